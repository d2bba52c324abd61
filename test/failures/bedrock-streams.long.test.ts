import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { RawConnection } from "../http/raw-connection.ts";
import { parseStream } from "../support/bodies.ts";
import { bedrockUpstream, startGateway, type TestGateway } from "../support/gateway.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing } from "../support/sluice-process.ts";

/**
 * Many concurrent streams of the bedrock kind. Callers use their own sockets, because the runtime
 * limits concurrent fetches.
 */

interface Caller {
  readonly port: number;
  readonly key: string;
  readonly model?: string;
}

async function openStream(caller: Caller, content: string): Promise<RawConnection> {
  const connection = await RawConnection.open(caller.port);
  const body = JSON.stringify({
    model: caller.model ?? "chat-model",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content }],
  });
  connection.write(
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
      `Authorization: Bearer ${caller.key}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return connection;
}

async function expectCounted(connection: RawConnection, count: number): Promise<void> {
  const answer = await connection.answer();
  connection[Symbol.dispose]();
  expect(answer?.status).toBe(200);
  const { chunks, isDone } = parseStream(answer?.body ?? "");
  expect(isDone).toBe(true);
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  expect(text.match(/\d+/g)?.map(Number)).toEqual([...Array(count).keys()].map((n) => n + 1));
}

function streamsAtOnce(caller: Caller, streams: number): Promise<readonly RawConnection[]> {
  return Promise.all(Array.from({ length: streams }, () => openStream(caller, "count: 40")));
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error("it never happened");
    await Bun.sleep(2);
  }
}

const leaver = "simulated-leaver";
const target = (model: string): string =>
  `{ upstream: simulator, model: ${model}, bedrock: { family: claude-4 } }`;

describe("streams in this process", () => {
  let gateway: TestGateway;
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  beforeAll(async () => {
    process.on("unhandledRejection", onRejection);
    gateway = await startGateway({ kind: "bedrock", simulator: { tokensPerSecond: 80 } });
    await gateway.reconfigure({
      // Exactly as many places as a round needs, so that a leaked one fails the next round.
      upstreams: `
  simulator: ${bedrockUpstream(gateway.simulator.origin, "max_in_flight: 200")}`,
      models: `
  chat-model: { kind: chat, context_window: 200000, targets: [${target("simulated-chat")}] }
  leaver: { kind: chat, context_window: 200000, targets: [${target(leaver)}] }`,
    });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    process.off("unhandledRejection", onRejection);
  });

  test("release all places and have one row each, in five rounds of 200", async () => {
    for (let round = 0; round < 5; round += 1) {
      const connections = await streamsAtOnce(gateway, 200);
      await until(() => gateway.simulator.openCalls === 200);
      await Promise.all(connections.map((connection) => expectCounted(connection, 40)));
      await until(() => gateway.simulator.openCalls === 0);
    }
    const rows = await gateway.usage();
    expect(rows).toHaveLength(1_000);
    expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set(["completed"]));
    expect(new Set(rows.map(({ usageSource }) => usageSource))).toEqual(new Set(["upstream"]));
    const entries = gateway.simulator.truth.entries;
    const told = entries.reduce((sum, entry) => sum + entry.completionTokens, 0);
    expect(rows.reduce((sum, row) => sum + row.outputTokens, 0)).toBe(told);
    expect(rejections).toEqual([]);
  }, 180_000);

  test("release all places without a rejection when all callers leave at once", async () => {
    const connections = await streamsAtOnce({ ...gateway, model: "leaver" }, 200);
    await Promise.all(
      connections.map(async (connection, index) => {
        await Bun.sleep(index * 3);
        connection[Symbol.dispose]();
      }),
    );
    await until(() => gateway.simulator.openCalls === 0);
    const after = await streamsAtOnce(gateway, 200);
    await Promise.all(after.map((connection) => expectCounted(connection, 40)));
    expect(rejections).toEqual([]);
  }, 180_000);
});

describe("streams of a gateway in a process of its own", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-streams-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function serve(simulator: Simulator, name: string) {
    const path = join(folder, `${name}.yaml`);
    await Bun.write(
      path,
      `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/${name}.db" }
data_dir: ${folder}/${name}
shutdown: { pre_stop: 0s }
overload: { loop_delay: 10s }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: ${bedrockUpstream(simulator.origin)} }
models:
  chat-model: { kind: chat, context_window: 200000, targets: [${target("simulated-chat")}] }
`,
    );
    const key = await createKeyOf(path);
    const serving = await startServing(["--config", path]);
    return { serving, caller: { port: Number(new URL(serving.dataUrl).port), key } };
  }

  test("can be more at a time than the runtime's default of fetches", async () => {
    await using simulator = startSimulator({ tokensPerSecond: 15 });
    const { serving, caller } = await serve(simulator, "many");
    await using _ = serving;
    const connections = await streamsAtOnce(caller, 400);
    await until(() => simulator.openCalls === 400);
    await Promise.all(connections.map((connection) => expectCounted(connection, 40)));
    expect(serving.text()).not.toMatch(/ (?:WARN|ERROR) |unhandled/);
    serving.signal("SIGTERM");
    expect(await serving.exited).toBe(0);
  }, 180_000);

  test("take no more memory in later rounds of 200 than in earlier ones", async () => {
    await using simulator = startSimulator({ tokensPerSecond: 80 });
    const { serving, caller } = await serve(simulator, "memory");
    await using _ = serving;
    const residentBytes: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      const connections = await streamsAtOnce(caller, 200);
      await until(() => simulator.openCalls === 200);
      await Promise.all(connections.map((connection) => expectCounted(connection, 40)));
      await until(() => simulator.openCalls === 0);
      residentBytes.push(residentBytesOf(serving.processPid));
    }
    // Resident memory varies with the collector; a leak also raises its minimum.
    const [earlier, later] = [residentBytes.slice(0, 4), residentBytes.slice(4)];
    expect(Math.min(...later) - Math.max(...earlier)).toBeLessThan(16 * 1024 * 1024);
  }, 180_000);
});

function residentBytesOf(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return pages * 4096;
}
