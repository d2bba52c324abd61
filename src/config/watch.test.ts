import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Config } from "./config.ts";
import { parseConfig } from "./load.ts";
import { ConfigWatch } from "./watch.ts";

function fileText(depth: number, extra = ""): string {
  return `http: { json_depth: ${depth} }
environments: [{ name: local, hosts: ["*"], models: ["*"] }]
upstreams: { one: { kind: openai, base_url: http://127.0.0.1:9/v1 } }
models: { a: { kind: chat, context_window: 9, targets: [{ upstream: one, model: m }] } }
${extra}`;
}

function readText(text: string): Config {
  const result = parseConfig(text, { name: "test", env: {} });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

/** The calls of a watch, in order; `next` waits for one more. */
class Heard {
  readonly events: string[] = [];
  readonly configs: Config[] = [];
  #waiting: (() => void) | undefined;

  add(event: string, config?: Config): void {
    this.events.push(event);
    if (config !== undefined) this.configs.push(config);
    this.#waiting?.();
  }

  async next(count: number): Promise<void> {
    while (this.events.length < count) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }
}

let directory = "";
let watched: ConfigWatch | undefined;
let heard = new Heard();

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice-watch-"));
  heard = new Heard();
});

afterEach(() => {
  watched?.[Symbol.dispose]();
  watched = undefined;
  rmSync(directory, { recursive: true, force: true });
});

function start(path: string, text = fileText(10)): ConfigWatch {
  watched = new ConfigWatch({
    path,
    env: {},
    current: readText(text),
    text,
    intervalMs: 5,
    now: () => Date.parse("2026-11-23"),
    onConfig: (config) => heard.add(`depth ${config.http.jsonDepth}`, config),
    onProblems: (problems) => heard.add(`problems ${problems}`),
    onNotice: (notice) => heard.add(`notice ${notice}`),
  });
  return watched;
}

function startWithFile(): string {
  const path = join(directory, "sluice.yaml");
  writeFileSync(path, fileText(10));
  start(path);
  return path;
}

describe("the watch of the file", () => {
  test("warns of ended models that a change adds", () => {
    const path = startWithFile();
    const haiku = "us.anthropic.claude-3-5-haiku-20241022-v1:0";
    const text = fileText(11)
      .replace("kind: openai, base_url: http://127.0.0.1:9/v1", "kind: bedrock, region: us-east-1")
      .replace("context_window: 9", "context_window: 9000, max_output_tokens: 8192")
      .replace("model: m", `model: "${haiku}"`);
    writeFileSync(path, text);
    watched?.reload();
    const [warning, ...others] = heard.events;
    expect(warning).toStartWith(`notice models.a: ${haiku} reached its end of life on 2026-06-19`);
    expect(others).toEqual(["depth 11"]);
  });

  test("passes on every file that is rewritten", async () => {
    const path = startWithFile();
    writeFileSync(path, fileText(11));
    await heard.next(1);
    writeFileSync(path, fileText(12));
    await heard.next(2);
    expect(heard.events).toEqual(["depth 11", "depth 12"]);
  });

  test("passes on every file that an editor replaces", async () => {
    const path = startWithFile();
    for (const depth of [11, 12, 13]) {
      writeFileSync(`${path}.new`, fileText(depth));
      renameSync(`${path}.new`, path);
      await heard.next(depth - 10);
    }
    expect(heard.events).toEqual(["depth 11", "depth 12", "depth 13"]);
  });

  test("follows a symbolic link that is swapped, as Kubernetes does", async () => {
    for (const [name, depth] of [
      ["first", 10],
      ["second", 11],
    ] as const) {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, "sluice.yaml"), fileText(depth));
    }
    symlinkSync("first", join(directory, "..data"));
    const path = join(directory, "sluice.yaml");
    symlinkSync(join("..data", "sluice.yaml"), path);
    start(path);
    symlinkSync("second", join(directory, "..data_new"));
    renameSync(join(directory, "..data_new"), join(directory, "..data"));
    await heard.next(1);
    writeFileSync(join(directory, "second", "sluice.yaml"), fileText(12));
    await heard.next(2);
    expect(heard.events).toEqual(["depth 11", "depth 12"]);
  });

  test("reports an invalid file at its change and at each reload, and passes on a valid one", async () => {
    const path = startWithFile();
    writeFileSync(path, fileText(1));
    await heard.next(1);
    writeFileSync(path, fileText(1));
    watched?.reload();
    expect(heard.events).toHaveLength(2);
    expect(heard.events[1]).toBe(heard.events[0] ?? "");
    writeFileSync(path, fileText(11));
    await heard.next(3);
    expect(heard.events[0]).toStartWith("problems ");
    expect(heard.events[0]).toContain("http.json_depth: must be at least 8");
    expect(heard.events[0]).toEndWith("The previous configuration stays in use.");
    expect(heard.events.slice(2)).toEqual(["depth 11"]);
  });

  test("ignores a text that it has read already", async () => {
    const path = startWithFile();
    writeFileSync(path, fileText(10));
    watched?.reload();
    writeFileSync(path, fileText(11));
    watched?.reload();
    watched?.reload();
    expect(heard.events).toEqual(["depth 11"]);
  });

  test("reads the file at once on reload", () => {
    const path = startWithFile();
    writeFileSync(path, fileText(11));
    watched?.reload();
    expect(heard.events).toEqual(["depth 11"]);
  });

  test("notices a change made between reading the file and watching it", async () => {
    const path = join(directory, "sluice.yaml");
    writeFileSync(path, fileText(11));
    start(path, fileText(10));
    await heard.next(1);
    expect(heard.events).toEqual(["depth 11"]);
  });

  test("reports a missing file once and at each reload, and ignores its return without a change", async () => {
    const path = startWithFile();
    rmSync(path);
    await heard.next(1);
    watched?.reload();
    writeFileSync(path, fileText(10));
    watched?.reload();
    writeFileSync(path, fileText(11));
    watched?.reload();
    expect(heard.events).toHaveLength(3);
    expect(heard.events[0]).toContain("cannot be read (ENOENT)");
    expect(heard.events[1]).toBe(heard.events[0] ?? "");
    expect(heard.events[2]).toBe("depth 11");
  });

  test("keeps settings that only a restart can change, and reports them", () => {
    const path = startWithFile();
    const changes = `listen: { data: "127.0.0.1:1" }
storage: { url: "sqlite:other.db" }
data_dir: other
upstream_requests: 5
auth: { peppers: [0123456789abcdef0123456789abcdef] }
streams: { write_timeout: 1s }
limits: { default_output_tokens: 7 }
ledger: { batch_rows: 7 }
telemetry: { log_level: debug }`;
    writeFileSync(path, fileText(10, changes));
    watched?.reload();
    expect(heard.events).toEqual([
      `notice ${path}: changes that take effect only after a restart: ` +
        "listen, storage, data_dir, upstream_requests, limits, ledger, " +
        "telemetry, auth",
      "depth 10",
    ]);
    expect(heard.configs[0]).toMatchObject({
      listen: { data: { port: 8080 } },
      storage: { path: resolve("data/sluice.db") },
      dataDir: resolve("data"),
      upstreamRequests: 8192,
      auth: { peppers: [] },
      streams: { writeTimeoutMs: 1000 },
      limits: { store: "memory", defaultOutputTokens: 1024 },
      ledger: { batchRows: 2000 },
      telemetry: { logLevel: "info" },
    });
  });

  test("reports a missing directory, and reads the file once it is there", async () => {
    const path = join(directory, "none", "sluice.yaml");
    start(path);
    await heard.next(1);
    expect(heard.events[0]).toContain("cannot be read (ENOENT)");
    mkdirSync(join(directory, "none"));
    writeFileSync(path, fileText(11));
    await heard.next(2);
    expect(heard.events[1]).toBe("depth 11");
  });

  test("is silent once disposed", () => {
    const path = startWithFile();
    watched?.[Symbol.dispose]();
    writeFileSync(path, fileText(11));
    watched?.reload();
    expect(heard.events).toEqual([]);
  });
});
