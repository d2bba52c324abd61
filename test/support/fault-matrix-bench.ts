import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import type { TruthEntry } from "../../src/simulator/truth-log.ts";
import { readAnswer } from "./fault-load.ts";
import {
  faultRouting,
  faultTimeouts,
  faultVariants,
  type FaultVariant,
} from "./fault-matrix-table.ts";
import {
  bedrockUpstream,
  simulatorUpstream,
  startGateway,
  targetAt,
  type TestGateway,
  type UpstreamKind,
} from "./gateway.ts";

/** One place of the matrix on one wire. */
export interface Cell {
  readonly variant: FaultVariant;
  readonly isStreamed: boolean;
  /** Whether a second target, which is well, stands behind the one that shows the fault. */
  readonly hasSecond: boolean;
}

export interface SeenCall {
  readonly isHung: boolean;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Wall clock, when the caller had the first word of the answer; Infinity when it got none. */
  readonly firstWordAt: number;
  /** Undefined when the ledger has none. */
  readonly row: UsageRecord | undefined;
  /** What the upstreams saw of it, in the order of their beginnings. */
  readonly atFirst: readonly TruthEntry[];
  readonly atSecond: readonly TruthEntry[];
}

/** What an echoing model answers. */
export const words = "one two three four five six seven eight";

export const cells: readonly Cell[] = faultVariants.flatMap((variant) =>
  [false, true].flatMap((isStreamed) =>
    [false, true].map((hasSecond) => ({ variant, isStreamed, hasSecond })),
  ),
);

const callDeadlineMs = 20_000;
const fullCallDeadlineMs = 240_000;
const releaseDeadlineMs = 5_000;
const retryPauseMs = 10;

/**
 * A gateway before two upstreams, the first of which has one place and shows the faults. Every cell
 * has targets of its own, so that none is held against another cell's.
 */
export class FaultMatrixBench implements AsyncDisposable {
  readonly gateway: TestGateway;
  readonly second: Simulator;
  #marks = 0;

  private constructor(gateway: TestGateway, second: Simulator) {
    this.gateway = gateway;
    this.second = second;
  }

  static async start(kind: UpstreamKind): Promise<FaultMatrixBench> {
    const gateway = await startGateway({
      kind,
      sections: { telemetry: "{ log_level: warn, log_format: json }" },
    });
    const second = startSimulator();
    gateway.reconfigure({
      models: modelsOf(kind),
      upstreams: upstreamsOf(kind, gateway.simulator, second),
      routing: faultRouting,
    });
    return new FaultMatrixBench(gateway, second);
  }

  get first(): Simulator {
    return this.gateway.simulator;
  }

  /** The calls of a cell, one after the other; a fault by turns needs more than one. */
  async callsOf(cell: Cell): Promise<readonly SeenCall[]> {
    const { variant } = cell;
    this.first.setFaultPlan([{ ...variant.fault, times: Number.POSITIVE_INFINITY }]);
    const count = (cell.isStreamed ? variant.streamed : variant.plain).length;
    const calls: SeenCall[] = [];
    while (calls.length < count) calls.push(await this.#call(aliasOf(cell), cell.isStreamed));
    this.first.setFaultPlan([]);
    return calls;
  }

  /** Whether the only place of the first upstream comes back: another call gets it. */
  async isPlaceFree(): Promise<boolean> {
    const deadline = performance.now() + releaseDeadlineMs;
    // An upstream knows the end of an answer a moment before its reader does.
    while (performance.now() < deadline) {
      const { status, atFirst } = await this.#call("probe", true);
      if (status === 200) return atFirst.length === 1;
      await Bun.sleep(retryPauseMs);
    }
    return false;
  }

  async #call(model: string, isStreamed: boolean): Promise<SeenCall> {
    this.#marks += 1;
    const mark = `cell-${this.#marks}`;
    const body = {
      model,
      messages: [
        { role: "system", content: `mark:${mark}` },
        { role: "user", content: `echo: ${words}` },
      ],
      ...(isStreamed && { stream: true, stream_options: { include_usage: true } }),
    };
    const deadlineMs = model.includes("million") ? fullCallDeadlineMs : callDeadlineMs;
    const signal = AbortSignal.timeout(deadlineMs);
    try {
      const response = await this.gateway.post("/v1/chat/completions", body, { signal });
      const { text, firstWordAt } = await readAnswer(response);
      const id = response.headers.get("x-request-id");
      const row = (await this.gateway.usage()).find((candidate) => candidate.id === id);
      const { status, headers } = response;
      const truth = await this.#truthOf(mark);
      return { isHung: false, status, headers, text, firstWordAt, row, ...truth };
    } catch (error) {
      if (!signal.aborted) throw error;
      const nothing = { status: 0, headers: new Headers(), text: "", row: undefined };
      const truth = await this.#truthOf(mark);
      return { isHung: true, ...nothing, firstWordAt: Infinity, ...truth };
    }
  }

  /** An upstream's call may end a moment after its caller has the answer. */
  async #truthOf(mark: string): Promise<Pick<SeenCall, "atFirst" | "atSecond">> {
    const deadline = performance.now() + releaseDeadlineMs;
    while (this.first.openCalls + this.second.openCalls > 0 && performance.now() < deadline) {
      await Bun.sleep(1);
    }
    const ofCall = ({ truth }: Simulator): readonly TruthEntry[] =>
      truth.entries.filter((entry) => entry.mark === mark);
    return { atFirst: ofCall(this.first), atSecond: ofCall(this.second) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await this.second[Symbol.asyncDispose]();
  }
}

function aliasOf({ variant, isStreamed, hasSecond }: Cell): string {
  const { fault, isSecure = false } = variant;
  const { mode, argument = "" } = fault;
  const parts = [mode, argument, isSecure ? "secure" : "", isStreamed ? "stream" : "plain"];
  return [...parts, hasSecond ? "two" : "one"].filter((part) => part !== "").join("-");
}

/** The model's name at the upstreams does not tell the fault: the plan of the first does. */
function modelsOf(kind: UpstreamKind): string {
  const modelAt = (alias: string, upstreams: readonly string[]): string => {
    const targets = upstreams.map((upstream, index) => {
      const model = { model: `simulated-${alias}`, family: "claude-4" };
      return targetAt(kind, model, `upstream: ${upstream}, priority: ${index + 1}`);
    });
    return `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targets.join(", ")}]`;
  };
  const ofCells = cells.map((cell) => {
    const first = cell.variant.isSecure === true ? "secure" : "simulator";
    return modelAt(aliasOf(cell), cell.hasSecond ? [first, "second"] : [first]);
  });
  return [...ofCells, modelAt("probe", ["simulator"])].join("");
}

function upstreamsOf(kind: UpstreamKind, first: Simulator, second: Simulator): string {
  const more = `timeouts: ${faultTimeouts}, max_in_flight: 1`;
  const secureOrigin = first.origin.replace("http:", "https:");
  const secure =
    kind === "bedrock"
      ? bedrockUpstream(secureOrigin, more)
      : `{ kind: openai, base_url: "${secureOrigin}/v1", ${more} }`;
  return `
  simulator: ${simulatorUpstream(first, kind, more)}
  second: ${simulatorUpstream(second, kind)}
  secure: ${secure}`;
}
