"""LangGraph graph with a memory: its store keeps the items of nodes, and also finds facts from conversations.

    pip install 'memstream[server,langgraph]'
    memstream serve --with-stages
    python examples/langgraph/assistant.py

It needs no API key: the model is a script. MEMORY_URL and MEMORY_TOKEN set the server, MEMORY_TENANT and MEMORY_USER
the user.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from memstream.client import ClientError, connect_blocking
from memstream.client.frameworks.langgraph import MemstreamStore

URL = os.environ.get("MEMORY_URL", "http://127.0.0.1:8000")
TOKEN = os.environ.get("MEMORY_TOKEN") or None
TENANT, USER = os.environ.get("MEMORY_TENANT", "examples"), os.environ.get("MEMORY_USER", "ana")
MODEL = GenericFakeChatModel(messages=iter([AIMessage("Noted."), AIMessage("You like green tea.")]))


def remember(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    """Store the user's statement. The user id comes from the configuration, never from the model."""
    said = str(state["messages"][-1].content)
    if not said.endswith("?"):
        namespace = ("users", config["configurable"]["user_id"], "said")
        store.put(namespace, "latest", {"text": said.replace("I like", "Likes").rstrip("."), "said": said})
    return {}


def answer(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    said = str(state["messages"][-1].content)
    found = store.search(("users", config["configurable"]["user_id"]), query=said, limit=3)
    known = "\n".join(item.value["text"] for item in found)
    print(f"[memory] {known or 'nothing yet'}")
    return {"messages": MODEL.invoke([("system", f"Known of the user:\n{known}"), *state["messages"]])}


def main() -> None:
    with connect_blocking(URL, token=TOKEN) as memory:
        builder = StateGraph(MessagesState)
        builder.add_node("remember", remember)
        builder.add_node("answer", answer)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(store=MemstreamStore(memory, tenant_id=TENANT, within=("users", USER)))
        for text in ("I like green tea.", "What do I like?"):
            done = graph.invoke({"messages": [("user", text)]}, {"configurable": {"user_id": USER}})
            print(f"you: {text}\nassistant: {done['messages'][-1].content}")


if __name__ == "__main__":
    try:
        main()
    except ClientError as error:
        sys.exit(f"memory: {error}")
