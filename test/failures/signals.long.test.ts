import { afterEach, beforeEach, expect, test } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import { parseStream } from "../support/bodies.ts";
import { longStreams, planCall, type PlannedCall } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { testNeeding } from "../support/requirement.ts";
import { serveCommand, TerminalSession } from "../support/terminal-session.ts";

let bench: ProcessBench;
beforeEach(async () => {
  bench = await ProcessBench.create({
    keys: 1,
    simulator: { tokensPerSecond: 20 },
    // A stream that the second signal does not cut ends long after the test has failed.
    sections: { shutdown: "{ pre_stop: 10m, drain_timeout: 10m }" },
  });
});
afterEach(() => bench[Symbol.asyncDispose]());

const [long] = longStreams;
if (long === undefined) throw new Error("there is no long stream");
const streamOf = (tokens: number): PlannedCall =>
  planCall([{ ...long, tokens: [tokens, tokens] }], new Random(1), "signalled");

function startSession(command: readonly string[]): TerminalSession {
  return new TerminalSession([...command, "--config", bench.configPath]);
}

async function openStream(place: { readonly dataUrl: string }, tokens: number): Promise<string> {
  // The gateway may end before the first event has opened the answer.
  const response = bench.fetch(place, streamOf(tokens));
  return response.then((answer) => answer.text()).catch(() => "cut");
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "two %s 50 ms apart end the gateway at once",
  async (signal) => {
    await using serving = await bench.serve();
    const stream = openStream(serving, 100_000);
    await until("the stream is open", () => bench.simulator.openCalls === 1);
    serving.signal(signal);
    await Bun.sleep(50);
    serving.signal(signal);
    expect(await serving.exited).toBe(1);
    expect(parseStream(await stream).isDone).toBe(false);
  },
);

const started = [
  ["a shell", serveCommand],
  ["npm start", ["npm", "start", "--"]],
  ["its own command", ["bin/sluice", "serve"]],
] as const;

testNeeding("npm").each(started)(
  "one Ctrl-C under %s lets an open stream complete, a second one cuts it",
  async (_, command) => {
    await using session = startSession(command);
    const place = await session.listening();
    const streams = [openStream(place, 40), openStream(place, 100_000)] as const;
    await until("the streams are open", () => bench.simulator.openCalls === 2);
    session.pressControl("C");
    await until("it drains", () => session.text.includes("shutting down"));
    expect(parseStream(await streams[0]).isDone).toBe(true);
    session.pressControl("C");
    expect(await session.exited).not.toBe(0);
    expect(parseStream(await streams[1]).isDone).toBe(false);
  },
);

testNeeding("npm").each(started)(
  "a SIGTERM to every process of the group under %s counts as one",
  async (_, command) => {
    const { configPath } = bench;
    const text = await Bun.file(configPath).text();
    await Bun.write(configPath, text.replace("pre_stop: 10m", "pre_stop: 0s"));
    await using session = startSession(command);
    const stream = openStream(await session.listening(), 40);
    await until("the stream is open", () => bench.simulator.openCalls === 1);
    session.signalGroup("SIGTERM");
    expect(parseStream(await stream).isDone).toBe(true);
    expect(await session.exited).toBe(0);
  },
);
