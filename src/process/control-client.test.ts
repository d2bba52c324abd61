import { portsInThread } from "../../test/support/thread-ports.ts";
import { describe, expect, test } from "bun:test";
import { virtualClock } from "../../test/support/virtual-clock.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { ControlClient, type RunningControl } from "./control-client.ts";
import type { StorageState, ToControl, ToMain } from "./messages.ts";
import { ThreadLink, type Handlers } from "./thread-link.ts";

/** A control thread that writes down what it is told. */
class StagedControl implements RunningControl {
  readonly heard: string[] = [];
  readonly states: (string | undefined)[] = [];
  readonly uses: [publicId: string, at: number][] = [];
  readonly #end = Promise.withResolvers<string>();
  readonly ended = this.#end.promise;
  readonly port: RunningControl["port"];
  readonly #link: ThreadLink<ToMain, ToControl>;
  isTerminated = false;
  spool: string | undefined;

  constructor(clock: ReturnType<typeof virtualClock>["clock"]) {
    const [main, control] = portsInThread();
    this.port = main;
    this.#link = new ThreadLink<ToMain, ToControl>(control, clock);
    const note = (kind: string) => void this.heard.push(kind);
    const handlers: Partial<Handlers<ToControl>> = {
      open: () => {
        note("open");
        return ["pepper"];
      },
      serve: (spool) => {
        note("serve");
        this.spool = spool;
      },
      state: (state) => {
        note("state");
        this.states.push(state?.notReady);
      },
      "keys.used": (uses) => void this.uses.push(...uses),
      "keys.load": () => new Promise(() => undefined),
      "usage.of-key": () => new Promise(() => undefined),
      stop: () => note("stop"),
    };
    this.#link.handle(handlers);
  }

  tellStorage(state: StorageState): void {
    this.#link.tell("storage", state);
  }

  die(): void {
    this.#link.lose("it is dead");
    this.#end.resolve("of a test");
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

class Stage implements AsyncDisposable {
  readonly #time = virtualClock();
  readonly threads: StagedControl[] = [];
  readonly events: string[] = [];
  notReady: string | undefined = "starting";
  readonly client = new ControlClient({
    start: () => {
      const thread = new StagedControl(this.#time.clock);
      this.threads.push(thread);
      return thread;
    },
    clock: this.#time.clock,
    state: () => ({
      pid: 1,
      version: "0",
      degraded: undefined,
      residentBytes: 0,
      loopDelayLongestMs: 0,
      loopDelayP99Ms: 0,
      openCalls: 0,
      calls: 0,
      spoolBytes: 0,
      keysGeneration: 0,
      chargesAs: undefined,
      startedAt: 0,
      configuredAt: 0,
      waitingRows: 0,
      droppedLogLines: 0,
      notReady: this.notReady,
    }),
    whyNotReady: () => this.notReady,
    handlers: {} as Omit<Handlers<ToMain>, "storage">,
    events: {
      controlLost: (reason) => void this.events.push(`lost: ${reason}`),
      controlBack: () => void this.events.push("back"),
      controlGivenUp: (deaths) => void this.events.push(`given up: ${deaths}`),
    },
    onGivenUp: () => undefined,
  });

  get thread(): StagedControl {
    const thread = this.threads.at(-1);
    if (thread === undefined) throw new Error("no thread was started");
    return thread;
  }

  async serve(): Promise<void> {
    await this.client.open();
    this.notReady = undefined;
    await this.client.serve("/data/spool");
  }

  advance(durationMs: number): void {
    this.#time.advance(durationMs);
  }

  /** The thread dies, and the next one begins. */
  die(): void {
    this.thread.die();
    this.advance(5_000);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.client.stop();
  }
}

describe("a control thread", () => {
  test("opens the database, then serves with the spool of the process", async () => {
    await using stage = new Stage();
    const { client } = stage;
    expect(await client.open()).toEqual(["pepper"]);
    await client.serve("/data/spool");
    expect(stage.thread.heard).toEqual(["open", "state", "serve"]);
    const stored = { notReady: "no database", stored: { segment: 1, closes: 2 } };
    stage.thread.tellStorage(stored);
    stage.advance(0);
    expect(client.storage).toEqual(stored);
  });

  test("hears every second that the main thread lives, and soon when it is no longer ready", async () => {
    await using stage = new Stage();
    await stage.serve();
    const { states } = stage.thread;
    const before = states.length;
    stage.advance(10_000);
    expect(states.length - before).toBeGreaterThanOrEqual(9);
    states.length = 0;
    stage.notReady = "draining";
    stage.advance(100);
    expect(states).toEqual(["draining"]);
    stage.notReady = undefined;
    stage.advance(100);
    expect(states).toEqual(["draining", undefined]);
  });

  test("hears at once of the first use of a secret, and of later ones together", async () => {
    await using stage = new Stage();
    await stage.serve();
    const { port } = stage.client;
    for (const at of [1, 2, 3]) port.noteUse("pub_a", at);
    port.noteUse("pub_b", 4);
    stage.advance(0);
    expect(stage.thread.uses).toEqual([
      ["pub_a", 1],
      ["pub_b", 4],
    ]);
    await stage.client.stop();
    expect(stage.thread.uses.slice(2)).toEqual([
      ["pub_a", 3],
      ["pub_b", 4],
    ]);
  });

  test("is waited for no longer than a second by a key that asks for its usage", async () => {
    await using stage = new Stage();
    await stage.serve();
    let outcome = "waits";
    const asked = stage.client.port.totalsOf("key_a").catch(() => (outcome = "given up"));
    stage.advance(999);
    await Promise.resolve();
    expect(outcome).toBe("waits");
    stage.advance(1);
    await asked;
    expect(outcome).toBe("given up");
  });

  test("stores what it can before it is ended", async () => {
    const stage = new Stage();
    await stage.serve();
    await stage.client.stop();
    expect([stage.thread.heard.at(-1), stage.thread.isTerminated]).toEqual(["stop", true]);
    stage.die();
    expect([stage.events, stage.threads.length]).toEqual([[], 1]);
  });
});

describe("a control thread that dies", () => {
  test("fails what needs it as an unavailable database does, until the next one serves", async () => {
    await using stage = new Stage();
    await stage.serve();
    const { port } = stage.client;
    const load = () => port.keys.loadKeys(0, 1).catch((error: unknown) => error);
    const open = load();
    stage.thread.tellStorage({ notReady: "no database", stored: undefined });
    stage.advance(0);
    stage.thread.die();
    stage.advance(0);
    expect(await open).toBeInstanceOf(StorageUnavailable);
    expect(await load()).toBeInstanceOf(StorageUnavailable);
    expect(stage.client.storage).toEqual({ notReady: undefined, stored: undefined });
    port.noteUse("pub_a", 1);
    expect(stage.events).toEqual(["lost: of a test"]);
    stage.advance(5_000);
    expect(stage.events).toEqual(["lost: of a test", "back"]);
    expect(stage.thread.heard.slice(0, 3)).toEqual(["open", "state", "serve"]);
    expect([stage.thread.spool, stage.threads.length]).toEqual(["/data/spool", 2]);
  });

  test("is started again with the uses that it has not heard of", async () => {
    await using stage = new Stage();
    await stage.serve();
    stage.thread.die();
    stage.advance(0);
    stage.client.port.noteUse("pub_a", 1);
    stage.advance(5_000);
    await stage.client.stop();
    expect(stage.thread.uses).toEqual([["pub_a", 1]]);
  });

  test("five times in a row is given up, and not started again", async () => {
    await using stage = new Stage();
    await stage.serve();
    for (let death = 1; death <= 5; death += 1) stage.die();
    stage.advance(600_000);
    expect(stage.events.slice(-2)).toEqual(["lost: of a test", "given up: 5"]);
    expect(stage.events.filter((event) => event === "back")).toHaveLength(4);
    expect(stage.threads).toHaveLength(5);
    const load = stage.client.port.keys.loadKeys(0, 1).catch((error: unknown) => error);
    expect(await load).toBeInstanceOf(StorageUnavailable);
  });

  test("now and then is always started again", async () => {
    await using stage = new Stage();
    await stage.serve();
    for (let death = 1; death <= 10; death += 1) {
      stage.die();
      stage.advance(60_000);
    }
    expect(stage.events.filter((event) => event === "back")).toHaveLength(10);
  });
});
