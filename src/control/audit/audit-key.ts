import type { Key } from "../../domain/keys/key.ts";
import { keyFields } from "./audit-fields.ts";
import type { Change } from "../operation/change.ts";

interface KeyStates {
  readonly before?: Key;
  readonly after: Key;
}

/** Says in the audit what became of a key, and that key rings have to follow. */
export async function auditKey(
  changing: Change,
  action: string,
  { before, after }: KeyStates,
): Promise<void> {
  changing.touchesKeys();
  await changing.audit({
    action,
    subject: { type: "key", id: after.id },
    accountId: after.accountId,
    before: before && keyFields(before),
    after: keyFields(after),
  });
}
