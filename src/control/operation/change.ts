import type { AuditAction } from "../contract/audit.ts";
import type { AuditEntry, AuditFields } from "../../store/audit.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ControlTransaction, ControlView } from "../../store/repositories/control-store.ts";
import type { OperationCall } from "./operation.ts";
import type { AdminServices, KeysApplied } from "../services.ts";
import { wrongState } from "./refusals.ts";

/** A transaction of the control plane, with the common parts of every change. */
export interface Change {
  readonly transaction: ControlTransaction;
  readonly now: number;
  /** Where the request comes from; undefined without a connection. */
  readonly address: string | undefined;
  readonly audit: (entry: AuditedChange) => Promise<unknown>;
  /** Marks keys, or their owners, as changed, so that this process reloads them at once. */
  readonly touchesKeys: () => void;
}

export interface AuditedChange<Action extends string = AuditAction> {
  /** `<resource>.<verb>`, such as `key.rotate`. */
  readonly action: Action;
  readonly subject: { readonly type: string; readonly id: string };
  readonly accountId: string | undefined;
  /** Undefined for a new entity. Only fields that differ from `after` are stored. */
  readonly before?: AuditFields | undefined;
  /** Undefined for a removed entity. */
  readonly after?: AuditFields | undefined;
}

/**
 * The only way to change something. The work, its audit entries and the replayable answer share one
 * transaction, so a crash leaves no change without its entry, and a repeated request makes no
 * change twice. `work` returns the operation's answer.
 */
export async function change<Answer>(
  services: ChangeServices,
  call: OperationCall,
  work: (change: Change) => Promise<Answer>,
): Promise<Answer> {
  return (await changeKeys(services, call, work)).answer;
}

type ChangeServices = Pick<AdminServices, "store" | "clock" | "onKeysChanged">;

export interface Changed<Answer> {
  readonly answer: Answer;
  /** Undefined if no keys were touched, or if nobody can tell who has applied it. */
  readonly applied: KeysApplied | undefined;
}

/** The same; also tells how many processes have applied a change of keys. */
export async function changeKeys<Answer>(
  services: ChangeServices,
  call: OperationCall,
  work: (change: Change) => Promise<Answer>,
): Promise<Changed<Answer>> {
  const { id: requestId, address, principal, replies } = call;
  const actor = { kind: principal.kind, id: principal.userId, name: principal.name };
  let hasTouchedKeys = false;
  const answer = await changeAs(services, { actor, address, requestId }, async (changing) => {
    await replies?.expectNone(changing.transaction);
    if (call.isSignIn !== true) await requireLiveAccount(changing.transaction, principal);
    const touchesKeys = (): void => {
      hasTouchedKeys = true;
    };
    const made = await work({ ...changing, touchesKeys });
    await replies?.keep(changing.transaction, made);
    return made;
  });
  if (!hasTouchedKeys) return { answer, applied: undefined };
  // The change is committed; if the reload fails, the key ring loads it at its next poll.
  return { answer, applied: await services.onKeysChanged().catch(() => undefined) };
}

/** Account holders of a disabled account may only sign in and read. Throws 409. */
async function requireLiveAccount(view: ControlView, principal: Principal): Promise<void> {
  const { role, accountId } = principal;
  if (role !== "account_holder" || accountId === undefined) return;
  const account = await view.accounts.get(accountId);
  if (account?.disabledAt === undefined) return;
  throw wrongState(
    "Your account is disabled: you can read, but not change anything. Ask an operator.",
  );
}

/**
 * The actor of changes that Sluice itself makes, for example when the demo starts for the first
 * time.
 */
export const bySystem = { actor: { kind: "system", id: undefined, name: "system" } } as const;

type Author = Pick<AuditEntry, "actor"> & Partial<Pick<AuditEntry, "address" | "requestId">>;

/** Makes a change without a request. The key ring loads it at its next poll. */
export function changeAs<Answer>(
  { store, clock }: Pick<AdminServices, "store" | "clock">,
  { actor, address, requestId }: Author,
  work: (change: Change) => Promise<Answer>,
): Promise<Answer> {
  const now = clock.now();
  return store.change((transaction) =>
    work({
      transaction,
      now,
      address,
      audit: ({ before, after, ...entry }) =>
        transaction.audit.append({
          at: now,
          actor,
          address,
          requestId,
          ...entry,
          ...differences(before, after),
        }),
      touchesKeys: () => undefined,
    }),
  );
}

function differences(
  before: AuditFields | undefined,
  after: AuditFields | undefined,
): { before: AuditFields | undefined; after: AuditFields | undefined } {
  if (before === undefined || after === undefined) return { before, after };
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !isSameValue(before[name], after[name]));
  return { before: pick(before, changed), after: pick(after, changed) };
}

function pick(fields: AuditFields, names: readonly string[]): AuditFields {
  return Object.fromEntries(names.map((name) => [name, fields[name] ?? null]));
}
