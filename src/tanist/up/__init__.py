"""A whole cluster on one machine, for whoever wants to see it work: ``tanist up``.

``plan`` says what runs with which settings and ports, ``upkeep`` what is to be done when one of them ends;
both are pure. ``member`` is one child process, ``cluster`` owns them all, ``home_lock`` keeps others
off their folder, ``control`` lets a second terminal and the console ask and order.
"""
