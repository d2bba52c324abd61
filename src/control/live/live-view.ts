import { type LimitState, type UnitUse, usesOf } from "../../domain/limits/limit-scope.ts";
import type {
  GateFacts,
  KeyFacts,
  KeyWindow,
  LiveFacts,
  TargetFacts,
} from "../../domain/live-facts.ts";
import {
  liveGateSchema,
  liveProcessSchema,
  targetStates,
  type KeyUseView,
  type LiveTargetView,
  type WindowUseView,
} from "../contract/live.ts";
import type { LiveReader, Platform } from "../services.ts";
import { apiForm, timeText, viewAs } from "../values/api-form.ts";

export function viewProcesses(facts: readonly LiveFacts[]) {
  return facts
    .map((each) => viewAs(liveProcessSchema, each))
    .toSorted((one, other) => one.process - other.process);
}

/** Each configured target, with the worst state that a process knows of it, the worst first. */
export function viewTargets(platform: Platform, facts: readonly LiveFacts[]): LiveTargetView[] {
  const found = Map.groupBy(
    facts.flatMap(({ targets }) => targets),
    ({ id }) => id,
  );
  const views = new Map<string, LiveTargetView>();
  for (const { name: environment, models } of platform.environments) {
    for (const { alias, targets } of models) {
      for (const { id, upstream, pool, priority, weight } of targets) {
        const view = views.get(id) ?? {
          id,
          upstream,
          pool: pool ?? null,
          models: [],
          ...stateOf(found.get(id) ?? []),
        };
        view.models.push({ environment, alias, priority, weight });
        views.set(id, view);
      }
    }
  }
  markLastOnes(platform, views);
  const rank = ({ state }: LiveTargetView): number => targetStates.indexOf(state);
  return [...views.values()].toSorted((one, other) => rank(other) - rank(one));
}

/** A target that is out gets calls all the same if nothing else can serve one of its models. */
function markLastOnes({ environments }: Platform, views: ReadonlyMap<string, LiveTargetView>) {
  const models = environments.flatMap((environment) =>
    environment.models.map(({ alias, targets, fallbacks = [] }) => {
      const others = environment.models.filter((model) => fallbacks.includes(model.alias));
      const serving = [targets, ...others.map((model) => model.targets)].flat();
      return { alias, targets, serving: serving.flatMap(({ id }) => views.get(id) ?? []) };
    }),
  );
  const isIll = ({ state }: LiveTargetView): boolean => state === "out" || state === "failing";
  const last = models.filter(({ serving }) => serving.every(isIll));
  for (const view of views.values()) {
    const served = last.filter(({ targets }) => targets.some(({ id }) => id === view.id));
    if (served.length === 0) continue;
    const aliases = [...new Set(served.map(({ alias }) => alias))].join(", ");
    view.state = "failing";
    view.why = `${view.why}; it is tried all the same, as nothing else serves ${aliases}`;
  }
}

function stateOf(
  of: readonly TargetFacts[],
): Omit<LiveTargetView, "id" | "upstream" | "pool" | "models"> {
  const state = ({ out, isThrottled, failing }: TargetFacts): LiveTargetView["state"] => {
    if (out !== undefined) return isThrottled ? "throttled" : "out";
    return failing === undefined ? "in_service" : "failing";
  };
  const rank = (each: TargetFacts): number => targetStates.indexOf(state(each));
  const [worst] = of.toSorted((one, other) => rank(other) - rank(one));
  const limits = of.flatMap(({ limit = [] }) => limit);
  const ended = of.flatMap((each) => each.ended ?? []);
  const failures: Record<string, number> = {};
  for (const [kind, count] of ended.flatMap((each) => Object.entries(each.failures))) {
    failures[kind] = (failures[kind] ?? 0) + count;
  }
  const [last] = ended
    .flatMap(({ lastFailure = [] }) => lastFailure)
    .toSorted((one, other) => other.at - one.at);
  return {
    state: worst === undefined ? "in_service" : state(worst),
    why: worst?.out?.because ?? worst?.failing ?? null,
    out_until: secondText(worst?.out?.untilAt),
    processes_out: of.filter(({ out }) => out !== undefined).length,
    keys_out: Math.max(0, ...of.map(({ keysOut }) => keysOut)),
    in_flight: sumOf(of.map(({ inFlight }) => inFlight)),
    in_flight_limit: limits.length === 0 ? null : sumOf(limits),
    attempts: sumOf(ended.map(({ attempts }) => attempts)),
    failures,
    last_failure: last === undefined ? null : { kind: last.kind, at: timeText(last.at) },
  };
}

export function viewGates(facts: readonly LiveFacts[]) {
  const sums = new Map<string, GateFacts>();
  for (const gate of facts.flatMap(({ gates }) => gates)) {
    const { kind, name } = gate;
    const { inFlight = 0, waiting = 0 } = sums.get(`${kind}:${name}`) ?? {};
    sums.set(`${kind}:${name}`, {
      ...gate,
      inFlight: inFlight + gate.inFlight,
      waiting: waiting + gate.waiting,
    });
  }
  return Array.from(sums.values(), (gate) => viewAs(liveGateSchema, gate));
}

/** What keys use of their limits, those nearest to one first. Rejects if the limits cannot be read. */
export async function viewKeys(
  live: Pick<LiveReader, "limits">,
  facts: readonly LiveFacts[],
  now: number,
): Promise<readonly KeyUseView[]> {
  const keys = new Map<string, KeyFacts>();
  for (const key of facts.flatMap((each) => each.keys)) {
    const { openCalls = 0 } = keys.get(key.keyId) ?? {};
    keys.set(key.keyId, { ...key, openCalls: openCalls + key.openCalls });
  }
  const windows = Array.from(keys.values()).flatMap((key) => key.windows);
  const states = await live.limits(windows.map(({ scopes }) => scopes));
  const stateOfWindow = new Map(windows.map((window, index) => [window, states[index]]));
  const uses = [...keys.values()].flatMap((key) => viewUse(key, stateOfWindow, now) ?? []);
  return uses.toSorted((one, other) => other.used_percent - one.used_percent);
}

function viewUse(
  { windows, ...key }: KeyFacts,
  states: ReadonlyMap<KeyWindow, LimitState | undefined>,
  now: number,
): KeyUseView | undefined {
  const { plan = null } = key;
  let guarantee: KeyUseView["guarantee"] = null;
  const requestUses: WindowUseView[] = [];
  const tokenUses: WindowUseView[] = [];
  for (const window of windows) {
    const state = states.get(window);
    if (state === undefined) continue;
    const { of, seconds } = window;
    const uses = usesOf(state);
    if (of === "guarantee") guarantee = { ...viewUnit(uses.tokens, now), seconds };
    else {
      const set_by = of === "key" && plan !== null ? "plan" : of;
      requestUses.push({ ...viewUnit(uses.requests, now), set_by });
      tokenUses.push({ ...viewUnit(uses.tokens, now), set_by });
    }
  }
  const [requests, tokens] = [leastOf(requestUses), leastOf(tokenUses)];
  if (requests === undefined || tokens === undefined) return undefined;
  const used_percent = Math.max(percentOf(requests), percentOf(tokens));
  return { ...apiForm(key), plan, requests, tokens, guarantee, used_percent };
}

/** The limit in force: the one that leaves least. */
function leastOf(uses: readonly WindowUseView[]): WindowUseView | undefined {
  return uses.toSorted(
    (one, other) => one.remaining - other.remaining || one.limit - other.limit,
  )[0];
}

function viewUnit({ resetMs, ...use }: UnitUse, now: number) {
  return { ...use, free_at: resetMs > 0 ? secondText(now + resetMs) : null };
}

function percentOf({ limit, used }: WindowUseView): number {
  return Math.round((100 * used) / Math.max(1, limit));
}

/** To the second, so that it does not differ each time it is worked out. */
function secondText(at: number | undefined): string | null {
  return at === undefined ? null : timeText(Math.round(at / 1_000) * 1_000);
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
