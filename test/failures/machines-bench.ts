import type { z } from "zod";
import { changedKeySchema, rotatedKeySchema } from "../../src/control/contract/keys.ts";
import { processesSchema } from "../../src/control/contract/processes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { MessageSwitch } from "../support/message-switch.ts";

/** Three gateways on one PostgreSQL database, with a load of calls on all. */
export class MachinesBench implements AsyncDisposable {
  readonly gateways: readonly TestGateway[];
  readonly messages: MessageSwitch;
  readonly #loads: Promise<void>[] = [];
  #isOver = false;
  /** Answers of the load, by status. */
  readonly statuses = new Map<number, number>();

  private constructor(gateways: readonly TestGateway[], messages: MessageSwitch) {
    this.gateways = gateways;
    this.messages = messages;
  }

  static async start(url: string): Promise<MachinesBench> {
    const sections = { storage: `{ url: "${url}" }` };
    const messages = await MessageSwitch.install(url);
    // The first one makes the schema and the key of the load.
    const first = await startGateway({ sections });
    const others = [1, 2].map((number) =>
      startGateway({ sections, key: { application: `of-${number}` } }),
    );
    const bench = new MachinesBench([first, ...(await Promise.all(others))], messages);
    await until(async () => {
      const { data } = await bench.list();
      return data.length === 3 && data.every(({ live }) => live);
    });
    return bench;
  }

  async list() {
    return this.#ask(processesSchema, "GET", "/processes");
  }

  /** Repeats the revocation until its receipt is complete: a busy machine may outlast the first. */
  async revokeEverywhere(id: string): Promise<void> {
    await until(async () => {
      const { applied } = await this.#ask(changedKeySchema, "DELETE", `/keys/${id}`);
      return applied?.of === 3 && applied.processes === 3;
    });
  }

  rotate(id: string, body: object) {
    return this.#ask(rotatedKeySchema, "POST", `/keys/${id}/rotate`, body);
  }

  /** The status that each gateway gives to a secret. */
  async statusesOf(secret: string): Promise<readonly number[]> {
    return Promise.all(this.gateways.map((gateway) => statusWith(gateway, secret)));
  }

  /** Until every gateway takes a new secret. */
  async untilKnown(secret: string): Promise<void> {
    await until(async () => (await this.statusesOf(secret)).every((status) => status === 200));
  }

  /** Calls with the secret that `current` returns, until the end of the bench. */
  load(current: () => string): void {
    for (const gateway of this.gateways) this.#loads.push(this.#loadOne(gateway, current));
  }

  async endLoad(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loads);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endLoad();
    await this.messages[Symbol.asyncDispose]();
    for (const gateway of this.gateways) await gateway[Symbol.asyncDispose]();
  }

  async #loadOne(gateway: TestGateway, current: () => string): Promise<void> {
    while (!this.#isOver) {
      const status = await statusWith(gateway, current());
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      // All gateways and their callers share this process.
      await Bun.sleep(10);
    }
  }

  /** Any gateway serves the control plane. */
  async #ask<Answer>(
    schema: z.ZodType<Answer>,
    ...[method, path, body]: readonly [method: string, path: string, body?: object]
  ): Promise<Answer> {
    const gateway = this.gateways[Math.floor(Math.random() * this.gateways.length)];
    const response = await gateway?.admin(method, `/admin/v1${path}`, body);
    const answer: unknown = await response?.json();
    if (response?.ok !== true) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return schema.parse(answer);
  }
}

async function statusWith(gateway: TestGateway, secret: string): Promise<number> {
  const response = await gateway.get("/v1/models", {
    headers: { authorization: `Bearer ${secret}` },
  });
  await response.text();
  return response.status;
}

export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(20);
}
