import { z } from "zod";
import {
  changedKeySchema,
  issuedKeySchema,
  rotatedKeySchema,
} from "../../src/control/contract/keys.ts";
import { askAt } from "./stack-admin.ts";
import { MessageSwitch } from "../support/message-switch.ts";
import { type Machine, MachineStack, type StackOptions, statusOf } from "./machine-stack.ts";
import { StackLoad } from "./stack-load.ts";

/** What a receipt says: `processes` of `of` have the change. */
export type Applied = z.infer<typeof changedKeySchema>["applied"];

export interface TestKey {
  readonly id: string;
  readonly secret: string;
}

/** How often each gateway is asked with a secret that has just ended. */
const asks = 12;
const askersOfEach = 3;

interface BenchParts extends Pick<RevocationBench, "stack" | "messages"> {
  readonly applicationId: string;
  readonly key: TestKey;
}

/** Ends and replaces keys of several gateways under a load, and watches when each refuses. */
export class RevocationBench implements AsyncDisposable {
  readonly stack: MachineStack;
  readonly messages: MessageSwitch;
  readonly load: StackLoad;
  /** From the request to revoke until the last call that a gateway still accepted began. */
  readonly lastAcceptedMs: number[] = [];
  readonly #applicationId: string;
  #opened: AsyncDisposableStack | undefined;
  readonly #loaded: { key: TestKey; readonly secrets: string[] };

  private constructor({ stack, messages, applicationId, key }: BenchParts) {
    this.stack = stack;
    this.messages = messages;
    this.#applicationId = applicationId;
    this.#loaded = { key, secrets: [key.secret] };
    this.load = new StackLoad({ url: stack.url, keys: this.#loaded.secrets, perSecond: 20 });
  }

  static async create(options: StackOptions): Promise<RevocationBench> {
    await using opened = new AsyncDisposableStack();
    const prepare = async (url: string): Promise<void> => {
      await options.prepare?.(url);
      messages = opened.use(await MessageSwitch.install(url));
    };
    let messages: MessageSwitch | undefined;
    const stack = opened.use(await MachineStack.create({ ...options, prepare }));
    if (messages === undefined) throw new Error("the database was not prepared");
    await stack.createKey("Shop", ["--plan", "pilot"]);
    const lists = z.object({ data: z.array(z.object({ id: z.string() })) });
    const { data } = await askAt(stack.machine(0), lists, ["GET", "/applications"]);
    const applicationId = data[0]?.id ?? "";
    const key = await issueKey(stack, applicationId);
    await untilAll(stack.machines, key.secret, 200);
    const bench = new RevocationBench({ stack, messages, applicationId, key });
    bench.#opened = opened.move();
    return bench;
  }

  /** Those of the load, which change with each rotation. */
  get secrets(): readonly string[] {
    return this.#loaded.secrets;
  }

  /** A key that all gateways accept. */
  async issueKey(): Promise<TestKey> {
    const key = await issueKey(this.stack, this.#applicationId);
    await untilAll(this.stack.machines, key.secret, 200);
    return key;
  }

  /** Several of them. A gateway that has the last one has all. */
  async issueKeys(count: number): Promise<readonly TestKey[]> {
    const keys: TestKey[] = [];
    while (keys.length < count - 1) keys.push(await issueKey(this.stack, this.#applicationId));
    return [...keys, await this.issueKey()];
  }

  /** Revokes a key at one of the gateways. */
  async revoke(id: string, at: number): Promise<Applied> {
    const machine = this.stack.machine(at % this.stack.machines.length);
    return (await askAt(machine, changedKeySchema, ["DELETE", `/keys/${id}`])).applied;
  }

  /**
   * Revokes a key until the receipt says that all have applied it: a busy machine may outlast the
   * first. Returns the statuses of calls that began after that.
   */
  async revokeEverywhere({ id, secret }: TestKey, at: number): Promise<readonly number[]> {
    const watch = new SecretWatch(this.stack, secret);
    const beganAt = performance.now();
    while (!isComplete(await this.revoke(id, at))) await Bun.sleep(10);
    const statuses = await askAll(this.stack.machines, secret);
    this.lastAcceptedMs.push(Math.max(0, (await watch.stop()) - beganAt));
    return statuses;
  }

  /**
   * Rotates the key of the load, which goes on with the new secret. Returns the statuses of calls
   * with the new one that began after the receipt said that all have it.
   */
  async rotate(at: number): Promise<readonly number[]> {
    const { key, secrets } = this.#loaded;
    const rotated = await this.#rotate(key.id, { overlap_seconds: 600 }, at);
    if (!isComplete(rotated.applied)) await untilAll(this.stack.machines, rotated.api_key, 200);
    const statuses = await askAll(this.stack.machines, rotated.api_key);
    secrets[0] = rotated.api_key;
    return statuses;
  }

  /** Replaces the secret of a key at once. Returns what calls with the old and the new one get. */
  async replaceCompromised(at: number) {
    const { id, secret } = await this.issueKey();
    const rotated = await this.#rotate(id, { compromised: true }, at);
    if (!isComplete(rotated.applied)) {
      await untilAll(this.stack.machines, secret, 401);
      await untilAll(this.stack.machines, rotated.api_key, 200);
    }
    const [old, current] = [
      await askAll(this.stack.machines, secret),
      await askAll(this.stack.machines, rotated.api_key),
    ];
    return { old, current };
  }

  /** The times of the revocations since the last look, shortest first. */
  takeTimesMs(): readonly number[] {
    const times = this.lastAcceptedMs.splice(0).map(Math.round);
    return times.toSorted((one, other) => one - other);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    await this.#opened?.disposeAsync();
  }

  #rotate(id: string, body: object, at: number) {
    const machine = this.stack.machine(at % this.stack.machines.length);
    return askAt(machine, rotatedKeySchema, ["POST", `/keys/${id}/rotate`, body]);
  }
}

function isComplete(applied: Applied): boolean {
  return applied !== undefined && applied.silent === 0 && applied.processes === applied.of;
}

async function issueKey(stack: MachineStack, applicationId: string): Promise<TestKey> {
  const limits = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000 };
  const wanted = { application_id: applicationId, plan: "enterprise", limits };
  const issued = await askAt(stack.machine(0), issuedKeySchema, ["POST", "/keys", wanted]);
  return { id: issued.key.id, secret: issued.api_key };
}

/** Statuses of several calls to each gateway, each on a connection of its own; 0 without an answer. */
export async function askAll(
  machines: readonly Machine[],
  secret: string,
): Promise<readonly number[]> {
  const ask = ({ process }: Machine) => statusOf(process.dataUrl, secret).catch(() => 0);
  return Promise.all(
    machines.flatMap((machine) => Array.from({ length: asks }, () => ask(machine))),
  );
}

export async function untilAll(
  machines: readonly Machine[],
  secret: string,
  wanted: number,
): Promise<void> {
  while ((await askAll(machines, secret)).some((status) => status !== wanted)) await Bun.sleep(20);
}

/** Asks all gateways with a secret, again and again. */
class SecretWatch {
  #isOver = false;
  #lastAcceptedAt = 0;
  readonly #running: Promise<unknown>;

  constructor(stack: MachineStack, secret: string) {
    const askers = stack.machines.flatMap(({ process }) =>
      Array.from({ length: askersOfEach }, () => this.#ask(process.dataUrl, secret)),
    );
    this.#running = Promise.all(askers);
  }

  /** When the last call began that was accepted. */
  async stop(): Promise<number> {
    this.#isOver = true;
    await this.#running;
    return this.#lastAcceptedAt;
  }

  async #ask(url: string, secret: string): Promise<void> {
    while (!this.#isOver) {
      const beganAt = performance.now();
      const isAccepted = (await statusOf(url, secret)) === 200;
      if (isAccepted) this.#lastAcceptedAt = Math.max(this.#lastAcceptedAt, beganAt);
      await Bun.sleep(10);
    }
  }
}
