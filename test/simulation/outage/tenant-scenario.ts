import { allScenarios, type Behaviour, type Scenario } from "../../outage/tenants/scenarios.ts";
import { sharedModel, sharedSections, tenantAccounts } from "../../outage/tenants/shared-model.ts";
import { times } from "../random.ts";
import type { CallPlan, Scenario as RunPlan } from "../scenario.ts";
import { timeLimits, type TimeLimits } from "./cells.ts";
import { configuredScenario } from "./configured.ts";
import { plainCall } from "./plain-call.ts";

/** `even`: as often as the others; `bursts`: four times as often, twenty at once. */
const paces = {
  even: { factor: 1, atOnce: 1 },
  bursts: { factor: 4, atOnce: 20 },
} as const;
type Pace = keyof typeof paces;

/** A scenario of `test/outage` with one set of timeouts. */
export interface SimulatedTenants {
  readonly name: string;
  readonly scenario: Scenario;
  readonly limits: TimeLimits;
  readonly pace: Pace;
}

/** The durations before, during and after the calls of the tenant that causes faults. */
export interface TenantTimes {
  readonly perSecondOfEach: number;
  readonly warmSeconds: number;
  readonly faultSeconds: number;
  readonly afterSeconds: number;
}

/** The same calls of nineteen tenants, without and with the twentieth. */
export interface TenantRuns {
  readonly without: RunPlan;
  readonly beside: RunPlan;
  /** The begin of the twentieth's calls. */
  readonly faultsAt: number;
}

/** The key of the tenant that causes faults. */
export const faultyKey = "k0";

export function allSimulatedTenants(): readonly SimulatedTenants[] {
  return allScenarios().flatMap((scenario) =>
    pacesOf(scenario).flatMap((pace) =>
      (["short", "default"] as const).map((limits) => {
        const name = ["tenants", scenario.name, limits, pace].join("/");
        return { name, scenario, limits, pace };
      }),
    ),
  );
}

/** A crowd is a burst already. */
function pacesOf({ behaviour, isOneAccount }: Scenario): readonly Pace[] {
  const isEven = isOneAccount || behaviour === "none" || behaviour === "crowd";
  return isEven ? ["even"] : ["even", "bursts"];
}

export function placeTenants(
  { scenario, limits, pace }: SimulatedTenants,
  { perSecondOfEach: perSecond, ...tenantTimes }: TenantTimes,
): TenantRuns {
  const accounts = tenantAccounts(scenario.isOneAccount);
  const empty = configuredScenario({
    sections: sharedSections({
      ports: times(scenario.targets, (index) => 1 + index),
      timeouts: timeLimits[limits],
    }),
    accounts,
  });
  const { warmSeconds, faultSeconds, afterSeconds } = tenantTimes;
  const faultsAt = warmSeconds * 1_000;
  const untilMs = faultsAt + faultSeconds * 1_000;
  // The last call of the twentieth may hang for this long.
  const longestMs = Math.max(...empty.upstreams.map(({ timeouts }) => timeouts.firstByteMs));
  const all = { fromMs: 0, untilMs: untilMs + longestMs + afterSeconds * 1_000 };
  const gapMs = 1_000 / perSecond;
  const others = times(accounts.length - 1, (index) => {
    const fromMs = (gapMs * index) / (accounts.length - 1);
    const kind = index % 2 === 0 ? "whole" : "stream";
    return series({ name: `o${index}`, perSecond, kind, ...all, fromMs }, `k${1 + index}`);
  }).flat();
  const { factor, atOnce } = paces[pace];
  const causing = loadsOf(scenario.behaviour, perSecond * factor).flatMap((load) =>
    series({ ...load, atOnce, fromMs: faultsAt, untilMs }, faultyKey),
  );
  return {
    without: { ...empty, calls: others },
    beside: { ...empty, calls: [...others, ...causing] },
    faultsAt,
  };
}

/** Calls of one kind at a steady pace. */
interface Load {
  readonly name: string;
  readonly perSecond: number;
  readonly kind: CallPlan["kind"];
  /** The number of calls in a burst. */
  readonly atOnce?: number;
  readonly more?: Partial<CallPlan>;
}

interface Series extends Load {
  readonly fromMs: number;
  readonly untilMs: number;
}

function series(
  { name, perSecond, kind, atOnce = 1, more, fromMs, untilMs }: Series,
  key: string,
): readonly CallPlan[] {
  const gapMs = 1_000 / perSecond;
  return times(Math.ceil((untilMs - fromMs) / gapMs), (index) =>
    plainCall({
      id: `${name}-${index}`,
      atMs: fromMs + (index - (index % atOnce)) * gapMs,
      key,
      alias: sharedModel,
      kind,
      ...more,
    }),
  );
}

/** Streams of the crowd take two seconds, because their reader is slow. */
const crowdReadMs = 500;
const crowdPerSecond = 30;
const leavesAfterMs = 15;
const hugeBytes = 400_000;

/** The calls of the twentieth, as in the suite over sockets; huge inputs time out too. */
function loadsOf(behaviour: Behaviour, perSecond: number): readonly Load[] {
  const silent = "stall-before-headers";
  const stalls = { fault: "stall-halfway" } as const;
  switch (behaviour) {
    case "none":
      return [{ name: "none", perSecond, kind: "whole" }];
    case "timeouts":
      return [{ name: "timeouts", perSecond, kind: "whole", more: { fault: silent } }];
    case "huge-inputs": {
      const more = { promptBytes: hugeBytes, fault: silent } as const;
      return [{ name: "huge", perSecond, kind: "whole", more }];
    }
    case "stalls":
      return [{ name: "stalls", perSecond, kind: "stream", more: stalls }];
    case "disconnects": {
      const leave = { afterMs: leavesAfterMs, batches: 0, cancelsFirst: false };
      return [{ name: "leaves", perSecond, kind: "stream", more: { leave } }];
    }
    case "crowd": {
      const more = { readMs: crowdReadMs };
      return [
        { name: "crowd", perSecond: crowdPerSecond, kind: "stream", more },
        { name: "stalls", perSecond: 1, kind: "stream", more: stalls },
      ];
    }
  }
}
