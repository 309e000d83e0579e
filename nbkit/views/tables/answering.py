"""Answering sends each question of a table's front end to what knows the answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from nbkit.errors import OptionError

Answer = dict[str, Any]
Message = Mapping[str, Any]


class Answering(ABC):
    """Answers the messages of a table's front end."""

    table: ClassVar[str]

    @abstractmethod
    def questions(self) -> Mapping[str, Callable[[Message], Answer]]:
        """Returns the functions that answer each kind of question."""

    def answer(self, message: Message) -> Answer:
        """Answers one message of the front end, with its id; kind "error" where it asks for what is not there."""
        try:
            kinds = self.questions()
            if message.get("kind") not in kinds:
                raise OptionError(f"The {self.table} knows no question {message.get('kind')!r}.")
            return {"kind": message["kind"], "id": message.get("id"), **kinds[message["kind"]](message)}
        # A front end that waits for an answer must get one, whatever went wrong.
        except Exception as error:
            return {"kind": "error", "id": message.get("id"), "message": f"{type(error).__name__}: {error}"}
