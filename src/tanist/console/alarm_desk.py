"""The alarms of one console: what is the matter, and who is told."""

from collections.abc import Mapping

from tanist.console.alarms.board import Alarm, AlarmBoard, RuleView
from tanist.console.alarms.webhook import Webhook, WebhookView
from tanist.console.views.base import View
from tanist.console.watching.snapshot import Snapshot


class Alarms(View, frozen=True, kw_only=True):
    """What is the matter, what was, and by which rules."""

    firing_count: int
    alarms: list[Alarm]
    history: list[Alarm]
    rules: list[RuleView]
    webhook: WebhookView | None


class AlarmDesk:
    """Judges each look at the cluster. Without a webhook alarms are on the page alone."""

    def __init__(self, webhook: Webhook | None = None) -> None:
        self.board = AlarmBoard()
        self.webhook = webhook
        self._version = 0

    async def on_snapshot(self, snapshot: Snapshot) -> Mapping[str, str]:
        """Judge, tell, and say whether the page looks otherwise now."""
        before = len(self.board.current)
        events = self.board.on_snapshot(snapshot)
        if self.webhook is not None:
            for event in events:
                self.webhook.tell(event)
        if events or len(self.board.current) != before:
            self._version += 1
        return {"alarms": str(self._version)}

    @property
    def view(self) -> Alarms:
        return Alarms(
            firing_count=self.board.firing_count,
            alarms=self.board.current,
            history=self.board.history,
            rules=self.board.rules,
            webhook=None if self.webhook is None else self.webhook.view,
        )
