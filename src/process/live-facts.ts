import { guaranteeOf, planScopes } from "../admission/plan-scopes.ts";
import type { Caller } from "../domain/keys/key.ts";
import type {
  KeyFacts,
  KeyTotals,
  KeyUse,
  KeyWindow,
  LiveFacts,
  ReadLimits,
  WantedKeys,
} from "../domain/live-facts.ts";
import type { Model } from "../domain/model.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { BuiltServices } from "./wiring/build-services.ts";

export interface LiveParts extends Pick<
  LiveFacts,
  "process" | "openCalls" | "spoolBytes" | "spoolLimitBytes" | "reservedNano"
> {
  readonly services: Pick<BuiltServices, "health" | "capacity" | "overload" | "running">;
  readonly keys: Pick<KeyRing, "find" | "longestOf">;
  readonly snapshot: Snapshot;
}

/** Keys in use of an account, or of all: those with open calls, then the latest used. */
const mostKeys = 500;
const minuteSeconds = 60;

/** Reads what the parts of this process hold already; nothing is counted for it. */
export function readLiveFacts(
  { services, keys, snapshot, ...own }: LiveParts,
  wanted: WantedKeys,
): LiveFacts {
  const openByKey = services.running.countByKey();
  const found = new Map<string, KeyFacts>();
  const named = wanted.publicIds.map((publicId) => keys.find(publicId));
  const inUse =
    wanted.recent === undefined
      ? []
      : [
          ...Array.from(openByKey.keys(), (keyId) => keys.longestOf(keyId)),
          ...wanted.recent.map((publicId) => keys.find(publicId)),
        ];
  const room = new Map(wanted.accountIds.map((accountId) => [accountId, mostKeys]));
  for (const [index, live] of [...named, ...inUse].entries()) {
    if (live === undefined || found.has(live.key.id)) continue;
    const { key, accountLimits } = live;
    const { publicId } = live.secret;
    const limits = key.limits ?? snapshot.plans.get(key.plan)?.limits;
    if (limits === undefined) continue;
    if (index >= named.length && !takesRoom(room, key.accountId)) continue;
    const { id: keyId, accountId, application, environment } = key;
    const windows = windowsOf({ key, publicId, limits, accountLimits }, snapshot);
    const openCalls = openByKey.get(keyId) ?? 0;
    const plan = key.limits === undefined ? key.plan : undefined;
    found.set(keyId, { keyId, accountId, application, environment, plan, openCalls, windows });
  }
  return {
    ...own,
    loadBound: services.overload.bound,
    targets: services.health.facts(),
    gates: services.capacity.facts(),
    keys: [...found.values()],
  };
}

/** Whether an account, or who sees all, has room for another key, which this takes. */
function takesRoom(room: Map<string | undefined, number>, accountId: string): boolean {
  const takers = [accountId, undefined].filter((each) => (room.get(each) ?? 0) > 0);
  for (const each of takers) room.set(each, (room.get(each) ?? 0) - 1);
  return takers.length > 0;
}

/** What a key uses now. `totals` reads what it has used. */
export async function readKeyUse(
  { caller, snapshot }: { readonly caller: Caller; readonly snapshot: Snapshot },
  readLimits: ReadLimits,
  totals: (keyId: string) => Promise<KeyTotals>,
): Promise<KeyUse> {
  const windows = windowsOf(caller, snapshot);
  const [states, used] = await Promise.all([
    readLimits(windows.map(({ scopes }) => scopes)),
    totals(caller.key.id).catch(() => undefined),
  ]);
  return {
    windows: states.flatMap((state, index) => {
      const { of, seconds } = windows[index] ?? {};
      return of === undefined || seconds === undefined ? [] : [{ of, seconds, state }];
    }),
    totals: used,
  };
}

function windowsOf(caller: Caller, snapshot: Snapshot): readonly KeyWindow[] {
  const call = { caller, snapshot };
  const scopes = planScopes(call);
  const window = (of: KeyWindow["of"], own: KeyWindow["scopes"], seconds = minuteSeconds) =>
    own.length === 0 ? [] : [{ of, seconds, scopes: own }];
  const model = longestModel(caller, snapshot);
  const guarantee = model && guaranteeOf(call, model);
  return [
    ...window("key", scopes.slice(0, 2)),
    ...window("account", scopes.slice(2)),
    ...window(
      "guarantee",
      guarantee?.scopes.filter(({ unit }) => unit === "tokens") ?? [],
      guarantee?.seconds,
    ),
  ];
}

/** The window of a guarantee is as long as the model's longest calls need. */
function longestModel({ key }: Caller, snapshot: Snapshot): Model | undefined {
  if (key.provisionedUnits === 0) return undefined;
  const { environmentsByHost, defaultEnvironment } = snapshot;
  const environments = [...environmentsByHost.values(), defaultEnvironment];
  const own = environments.find((environment) => environment?.name === key.environment);
  const models = [...(own?.models.values() ?? [])].filter(({ targets }) =>
    targets.some(({ pool }) => pool === key.provisionedPool),
  );
  return models.toSorted((one, other) => other.contextWindow - one.contextWindow)[0];
}
