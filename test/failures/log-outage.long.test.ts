import { metricsOf } from "../support/metrics-of.ts";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../support/free-port.ts";
import { canMount, mountDisk } from "../support/ledger-truth-disk.ts";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { ReadablePipe } from "../support/readable-pipe.ts";
import { runSluice, processOf } from "../support/sluice-process.ts";
import { testWhere } from "../support/requirement.ts";
import { serveCommand, TerminalSession } from "../support/terminal-session.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const environment = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };

let bench: ProcessBench;
beforeEach(async () => {
  bench = await ProcessBench.create({
    keys: 1,
    sections: { telemetry: "{ log_level: debug, log_format: json, log_buffer: 64KiB }" },
  });
});
afterEach(() => bench[Symbol.asyncDispose]());

interface StartOptions {
  readonly variables?: Readonly<Record<string, string>>;
}

/** A gateway whose standard error goes to an open file. */
class LoggingGateway implements AsyncDisposable {
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly #child: ReturnType<typeof Bun.spawn>;

  private constructor(stderr: number, options: StartOptions) {
    const [data, admin] = [`127.0.0.1:${freePort()}`, `127.0.0.1:${freePort()}`];
    this.dataUrl = `http://${data}`;
    this.adminUrl = `http://${admin}`;
    const address = ["--data", data, "--admin", admin];
    const command = [process.execPath, main, "serve", "--config", bench.configPath, ...address];
    this.#child = Bun.spawn(command, {
      env: { ...environment, ...options.variables },
      stdio: ["ignore", "ignore", stderr],
    });
  }

  static async start(stderr: number, options: StartOptions = {}): Promise<LoggingGateway> {
    const gateway = new LoggingGateway(stderr, options);
    closeSync(stderr);
    await gateway.untilReady();
    return gateway;
  }

  untilReady(): Promise<void> {
    return until("it serves", async () => {
      if (this.#child.exitCode !== null) throw new Error("it ended");
      // The admin listener follows that of calls.
      const urls = [this.dataUrl, this.adminUrl].map((url) => fetch(`${url}/readyz`));
      const answers = await Promise.all(urls).catch(() => []);
      return answers.length > 0 && answers.every(({ status }) => status === 200);
    });
  }

  get processPid(): number | undefined {
    return processOf(this.#child.pid);
  }

  get exited(): Promise<number> {
    return this.#child.exited;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pid = this.#child.exitCode === null ? this.processPid : undefined;
    this.#child.kill("SIGKILL");
    await this.#child.exited;
    // The process ends after its parent and keeps the log open until then.
    await until("its process has ended", () => !existsSync(`/proc/${pid}`));
  }
}

interface Place {
  readonly dataUrl: string;
  readonly adminUrl: string;
}

/** Makes requests that write one line of the log each; all must be answered. */
async function askOften({ dataUrl }: Place, times: number): Promise<void> {
  for (let asked = 0; asked < times; asked += 50) {
    const answers = Array.from({ length: 50 }, () => fetch(`${dataUrl}/healthz`));
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
}

async function droppedLines({ adminUrl }: Place): Promise<number> {
  const metrics = await metricsOf(adminUrl);
  return Number(/^sluice_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);
}

/** The complete lines of the log; no line may be joined to a cut one. */
function linesOf(text: string): readonly { readonly message: string; readonly lines?: number }[] {
  const lines = text.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as { message: string });
}

function toldIn(text: string): number {
  const reported = text.split("\n").flatMap((line) => {
    const found = /"lines were dropped: the log could not be written","lines":(\d+)\}$/.exec(line);
    return found === null ? [] : [Number(found[1])];
  });
  return reported.reduce((sum, lines) => sum + lines, 0);
}

async function untilTold(gateway: Place, read: () => string): Promise<void> {
  await until("dropped lines are reported", async () => {
    // Each look is a line of the log itself, which must not fill a small disk again.
    await Bun.sleep(100);
    const dropped = await droppedLines(gateway);
    return toldIn(read()) === dropped;
  });
}

describe("a log that cannot be written ends no process, and reports lost lines afterwards", () => {
  test("a full device: calls are answered, and a crash is recovered", async () => {
    await using gateway = await LoggingGateway.start(openSync("/dev/full", "a"));
    const before = gateway.processPid;
    await askOften(gateway, 200);
    expect(gateway.processPid).toBe(before);
    await until("all are dropped", async () => (await droppedLines(gateway)) >= 200);
    await until("doctor tells it", async () => {
      const line = ["doctor", "--config", bench.configPath, "--no-targets"];
      return /\blog +lines dropped since the processes started: \d+/.test(
        (await runSluice(line)).output,
      );
    });
    process.kill(before ?? 0, "SIGKILL");
    await until("another one is there", () => ![before, undefined].includes(gateway.processPid));
    await gateway.untilReady();
    await askOften(gateway, 50);
    gateway.signal("SIGINT");
    expect(await gateway.exited).toBe(0);
  });

  testWhere(canMount, "small disks cannot be mounted")(
    "a full disk that has room again",
    async () => {
      using disk = mountDisk("256k");
      const path = join(disk.path, "log");
      await using gateway = await LoggingGateway.start(openSync(path, "a"));
      const before = gateway.processPid;
      const read = (): string => readFileSync(path, "utf8");
      disk.fill();
      await askOften(gateway, 500);
      const dropped = await droppedLines(gateway);
      expect(dropped).toBeGreaterThan(0);
      expect(toldIn(read())).toBe(0);
      disk.free();
      await untilTold(gateway, read);
      await askOften(gateway, 50);
      // The disk may have had room for a part of a line only.
      const isWritten = (line: string): boolean =>
        line.startsWith('{"time"') && line.includes('"message":"request"') && line.endsWith("}");
      await until("lines are written again", () => {
        const last = read().trimEnd().split("\n").at(-1);
        return last !== undefined && isWritten(last);
      });
      expect(gateway.processPid).toBe(before);
    },
  );

  test("a pipe whose reader is replaced by another", async () => {
    using pipe = new ReadablePipe(bench.folder);
    await using gateway = await LoggingGateway.start(pipe.openWriter());
    const before = gateway.processPid;
    pipe.read();
    pipe.close();
    await askOften(gateway, 200);
    await until("all are dropped", async () => (await droppedLines(gateway)) >= 200);
    pipe.open();
    await untilTold(gateway, () => pipe.read());
    expect(gateway.processPid).toBe(before);
    linesOf(pipe.read());
  });

  test("a pipe whose reader pauses: the queue is bounded", async () => {
    using pipe = new ReadablePipe(bench.folder);
    await using gateway = await LoggingGateway.start(pipe.openWriter());
    const before = gateway.processPid;
    const readBefore = pipe.read().length;
    await askOften(gateway, 3_000);
    const dropped = await droppedLines(gateway);
    expect(dropped).toBeGreaterThan(0);
    await untilTold(gateway, () => pipe.read());
    const lines = linesOf(pipe.read());
    // The pipe's buffer, the queue, and one or two lines.
    const inTime = lines.slice(
      0,
      lines.findIndex(({ lines: reported }) => reported !== undefined),
    );
    const waited = JSON.stringify(inTime).length - readBefore;
    expect(waited).toBeGreaterThan(64 * 1024);
    expect(waited).toBeLessThan((64 + 64 + 16) * 1024);
    expect(gateway.processPid).toBe(before);
  });

  test("a gateway ends on request although nobody reads its log", async () => {
    using pipe = new ReadablePipe(bench.folder);
    await using gateway = await LoggingGateway.start(pipe.openWriter());
    await askOften(gateway, 2_000);
    expect(await droppedLines(gateway)).toBeGreaterThan(0);
    gateway.signal("SIGINT");
    expect(await gateway.exited).toBe(0);
    expect(linesOf(pipe.read()).length).toBeGreaterThan(100);
  });

  test("a terminal that is stopped and resumed", async () => {
    await using session = new TerminalSession([...serveCommand, "--config", bench.configPath]);
    // Lines of a terminal end in CRLF.
    const read = (): string => session.text.replaceAll("\r", "");
    await until("it listens", () => read().includes('"listening"'));
    const [, dataUrl = "", adminUrl = ""] = /"data":"([^"]+)","admin":"([^"]+)"/.exec(read()) ?? [];
    const place = { dataUrl, adminUrl };
    session.pressControl("S");
    await askOften(place, 3_000);
    expect(await droppedLines(place)).toBeGreaterThan(0);
    session.pressControl("Q");
    await untilTold(place, read);
    session.pressControl("C");
    expect(await session.exited).toBe(0);
  });

  test("the output of a library does not block either", async () => {
    using pipe = new ReadablePipe(bench.folder);
    const preload = fileURLToPath(new URL("chatty-library.ts", import.meta.url));
    const variables = { BUN_OPTIONS: `--preload ${preload}` };
    await using gateway = await LoggingGateway.start(pipe.openWriter(), { variables });
    await until("lines are dropped", async () => (await droppedLines(gateway)) > 0);
    await askOften(gateway, 100);
    expect(pipe.read()).toContain("a library prints");
  });

  test("the simulator answers although nobody reads its output", async () => {
    const address = `127.0.0.1:${freePort()}`;
    const full = openSync("/dev/full", "a");
    const child = Bun.spawn([process.execPath, main, "simulator", "--listen", address], {
      env: environment,
      stdio: ["ignore", full, full],
    });
    closeSync(full);
    await until("it answers", async () => {
      return (await fetch(`http://${address}/truth`).catch(() => undefined))?.status === 200;
    });
    // Longer than the wait before the report of dropped lines, which fails too.
    await Bun.sleep(1_500);
    expect((await fetch(`http://${address}/truth`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  });
});
