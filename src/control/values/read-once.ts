import type { ControlView } from "../../store/repositories/control-store.ts";

/** Reads what an id names, for one answer: each only once. */
export function readOnce<Value>(
  read: (id: string) => Promise<Value>,
): (id: string) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (id) => {
    const value = known.get(id) ?? read(id);
    known.set(id, value);
    return value;
  };
}

/** Names of accounts; empty for one that is gone. */
export function readAccountNames({ accounts }: Pick<ControlView, "accounts">) {
  return readOnce(async (id) => (await accounts.get(id))?.name ?? "");
}
