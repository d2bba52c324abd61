import type { z } from "zod";
import pg from "pg";
import { changedKeySchema, rotatedKeySchema } from "../../src/control/contract/keys.ts";
import { replicasSchema } from "../../src/control/contract/replicas.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Three gateways on one PostgreSQL database, with a load of calls on all. */
export class ReplicasBench implements AsyncDisposable {
  readonly gateways: readonly TestGateway[];
  readonly #database: pg.Client;
  readonly #loads: Promise<void>[] = [];
  #isOver = false;
  /** Answers of the load, by status. */
  readonly statuses = new Map<number, number>();

  private constructor(gateways: readonly TestGateway[], database: pg.Client) {
    this.gateways = gateways;
    this.#database = database;
  }

  static async start(url: string): Promise<ReplicasBench> {
    const sections = { storage: `{ url: "${url}" }` };
    // The first one makes the schema and the key of the load.
    const first = await startGateway({ sections, workers: 2 });
    const others = [1, 2].map((workers) =>
      startGateway({ sections, workers, key: { application: `of-${workers}` } }),
    );
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    const bench = new ReplicasBench([first, ...(await Promise.all(others))], database);
    await until(async () => {
      const { data } = await bench.list();
      return data.length === 3 && data.every(({ live }) => live);
    });
    return bench;
  }

  async list() {
    return this.#ask(replicasSchema, "GET", "/replicas");
  }

  async revoke(id: string) {
    return this.#ask(changedKeySchema, "DELETE", `/keys/${id}`);
  }

  rotate(id: string, body: object) {
    return this.#ask(rotatedKeySchema, "POST", `/keys/${id}/rotate`, body);
  }

  /** The status that each worker of each gateway gives to a secret. */
  async statusesOf(secret: string): Promise<readonly number[]> {
    // Each address of a gateway is that of its next worker.
    const places = [...this.gateways, ...this.gateways];
    return Promise.all(places.map((gateway) => statusWith(gateway, secret)));
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

  /** Ends all connections that listen, again and again until the function returned is called. */
  dropMessages(): () => Promise<number> {
    let isOver = false;
    let ended = 0;
    const running = (async () => {
      while (!isOver) {
        const { rowCount } = await this.#database.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
        );
        ended += rowCount ?? 0;
        await Bun.sleep(5);
      }
    })();
    return async () => {
      isOver = true;
      await running;
      return ended;
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endLoad();
    await this.#database.end();
    for (const gateway of this.gateways) await gateway[Symbol.asyncDispose]();
  }

  async #loadOne(gateway: TestGateway, current: () => string): Promise<void> {
    while (!this.#isOver) {
      const status = await statusWith(gateway, current());
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
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
