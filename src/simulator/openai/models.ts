/** Names to show; a call may name any model at all. */
const shownModels = ["simulator-chat", "simulator-reason", "simulator-embed"] as const;
const created = 1_700_000_000;

export function modelBody(id: string): object {
  return { id, object: "model", created, owned_by: "sluice-simulator" };
}

export function modelListBody(): object {
  return { object: "list", data: shownModels.map((id) => modelBody(id)) };
}
