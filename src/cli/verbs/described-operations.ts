import { adminOperations } from "../../control/operations.ts";
import type { Operation } from "../../control/operation/operation.ts";
import { Passwords } from "../../control/sign-in/guard/passwords.ts";
import { Peppers } from "../../domain/keys/peppers.ts";
import { Secret } from "../../domain/keys/secret.ts";

/** The description of an operation. */
export type DescribedOperation = Omit<Operation, "run">;

/** The operations by id, from a control plane that is never opened. */
let described: ReadonlyMap<string, DescribedOperation> | undefined;

export function describedOperation(id: string): DescribedOperation {
  described ??= new Map(describe().map((operation) => [operation.id, operation]));
  const operation = described.get(id);
  if (operation === undefined) throw new Error(`there is no operation ${id}`);
  return operation;
}

function describe(): readonly DescribedOperation[] {
  return adminOperations({
    store: {
      read: unopened,
      change: unopened,
      verifyAudit: unopened,
      auditEnds: unopened,
      pepperUse: unopened,
    },
    reports: { totals: unopened, series: unopened, calls: unopened, call: unopened },
    usage: { erase: unopened },
    refusals: { find: unopened, list: unopened },
    clock: { now: unopened, monotonic: unopened, schedule: unopened },
    random: unopened,
    peppers: new Peppers(new Secret("")),
    platform: unopened,
    processes: unopened,
    lastUse: unopened,
    onKeysChanged: unopened,
    processRows: unopened,
    passwords: new Passwords(),
  });
}

function unopened(): never {
  throw new Error("operations are only described here");
}
