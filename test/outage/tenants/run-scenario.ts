import { startFaultProcess, type FaultProcess } from "../../support/fault-process.ts";
import { startDoubles } from "../doubles/start-doubles.ts";
import { gridSections } from "../grid/run-wave.ts";
import type { Call, Load } from "../load/load-plan.ts";
import { runLoad } from "../load/start-load.ts";
import { loadsOf, type Scenario } from "./scenarios.ts";
import { sharedModel, sharedSections, tenantAccounts } from "./shared-model.ts";

/** The durations before, during and after the calls of the tenant that causes faults. */
export interface TenantPlan {
  readonly perSecondOfEach: number;
  readonly warmSeconds: number;
  readonly faultSeconds: number;
  readonly afterSeconds: number;
  /** The fields of every upstream in the configuration. */
  readonly timeouts: string;
}

/** The calls of the nineteen others, concurrently on two independent gateways. */
export interface TenantRun {
  readonly scenario: Scenario;
  /** The time when the faults began; wall clock. */
  readonly faultsAt: number;
  readonly without: readonly Call[];
  readonly beside: readonly Call[];
  /** The calls of the tenant that causes faults. */
  readonly causing: readonly Call[];
}

const model = sharedModel;
const leadMs = 1_500;

export async function runScenario(
  scenario: Scenario,
  plan: TenantPlan,
  signal: AbortSignal,
): Promise<TenantRun> {
  await using without = await startWorld(scenario, plan);
  await using beside = await startWorld(scenario, plan);
  const { perSecondOfEach: perSecond, warmSeconds, faultSeconds, afterSeconds } = plan;
  const startsAt = Date.now() + leadMs;
  const faultsAt = startsAt + warmSeconds * 1000;
  const callsOf = (name: string, { keys, serving }: FaultProcess): readonly Load[] =>
    keys.slice(1).map((key, index) => {
      const kind = index % 2 === 0 ? "whole" : "stream";
      return { name: `${name}-${index}`, url: serving.dataUrl, key, model, kind, perSecond };
    });
  const { key, serving } = beside.gateway;
  const causer = { url: serving.dataUrl, key, model, perSecond };
  const loads = [...callsOf("without", without.gateway), ...callsOf("beside", beside.gateway)];
  const causes = [...loadsOf(scenario.behaviour, causer)];
  const seconds = warmSeconds + faultSeconds + afterSeconds;
  const [others, causing] = await Promise.all([
    runLoad({ startsAt, seconds, loads }, signal),
    runLoad({ startsAt: faultsAt, seconds: faultSeconds, loads: causes }, signal),
  ]);
  const ofWorld = (name: string): readonly Call[] =>
    [...others].flatMap(([load, calls]) => (load.startsWith(name) ? calls : []));
  return {
    scenario,
    faultsAt,
    without: ofWorld("without-"),
    beside: ofWorld("beside-"),
    causing: [...causing.values()].flat(),
  };
}

interface World extends AsyncDisposable {
  readonly gateway: FaultProcess;
}

/** A gateway with a key for every tenant, and its own upstreams. */
async function startWorld(
  { targets, isOneAccount }: Scenario,
  { timeouts }: TenantPlan,
): Promise<World> {
  await using started = new AsyncDisposableStack();
  const doubles = started.use(await startDoubles(targets));
  const sections = { ...gridSections, ...sharedSections({ ports: doubles.ports, timeouts }) };
  const gateway = started.use(await startFaultProcess(sections, tenantAccounts(isOneAccount)));
  const running = started.move();
  return { gateway, [Symbol.asyncDispose]: () => running.disposeAsync() };
}
