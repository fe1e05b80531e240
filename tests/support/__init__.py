"""What several tests share: test partners and the processes they run in."""
