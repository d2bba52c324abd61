import {
  type FaultStep,
  type Simulator,
  startSimulator,
  type TruthEntry,
} from "../../simulator/simulator.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  type TestGateway,
  type UpstreamKind,
} from "./gateway.ts";

/** A gateway and several simulated upstreams, each with its own faults. */
export interface FaultUpstreams extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly simulators: readonly Simulator[];
  /** Until it is changed. */
  break(index: number, mode: FaultStep["mode"]): void;
  repair(index: number): void;
  /** The calls that all upstreams saw. */
  truth(): readonly TruthEntry[];
}

export interface WantedUpstreams {
  readonly kind: UpstreamKind;
  readonly upstreams: number;
  readonly sections?: Readonly<Record<string, string>>;
}

const truthLogLimit = 200_000;
const timeouts = "timeouts: { connect: 500ms, first_byte: 30s, idle: 30s, total: 60s }";

/** The model `everywhere` has all upstreams as targets of one priority. */
export async function startFaultUpstreams(wanted: WantedUpstreams): Promise<FaultUpstreams> {
  const { kind, upstreams, sections = {} } = wanted;
  const gateway = await startGateway({
    kind,
    simulator: { truthLogLimit },
    sections: {
      telemetry: "{ log_level: warn, log_format: json }",
      // Callers, gateway and upstreams share a process here, so its delays are not the gateway's.
      overload: "{ loop_delay: 10s }",
      // The defaults of the configuration.
      routing: "{}",
      ...sections,
    },
  });
  const more = Array.from({ length: upstreams - 1 }, () => startSimulator({ truthLogLimit }));
  const simulators = [gateway.simulator, ...more];
  const targets = simulators.map((_, index) =>
    targetAt(kind, { model: "simulated-chat", family: "claude-4" }, `upstream: up${index}`),
  );
  await gateway.reconfigure({
    upstreams: simulators
      .map((simulator, index) => `\n  up${index}: ${simulatorUpstream(simulator, kind, timeouts)}`)
      .join(""),
    models: `
  everywhere:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targets.join(", ")}]`,
  });
  return {
    gateway,
    simulators,
    break: (index, mode) =>
      simulators[index]?.setFaultPlan([{ mode, times: Number.POSITIVE_INFINITY }]),
    repair: (index) => simulators[index]?.setFaultPlan([]),
    truth: () => simulators.flatMap(({ truth }) => truth.entries),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await Promise.all(more.map((simulator) => simulator[Symbol.asyncDispose]()));
    },
  };
}
