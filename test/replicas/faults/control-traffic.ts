import { generateApiKey } from "../../../src/domain/keys/api-key.ts";
import type { Replica } from "../replica-stack.ts";
import { sendAdmin } from "../stack-admin.ts";

const pauseMs = 150;

/** Changes at the control plane, and calls with keys that do not exist, at each gateway in turn. */
export class ControlTraffic {
  readonly #replicas: readonly Replica[];
  readonly #running: Promise<void>;
  readonly #changes = new Map<string, number>();
  readonly #unknown = new Map<string, number>();
  #isOver = false;

  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas;
    this.#running = this.#run();
  }

  /** The statuses of changes and of calls with unknown keys. */
  async stop(): Promise<{
    readonly changes: readonly string[];
    readonly unknown: readonly string[];
  }> {
    this.#isOver = true;
    await this.#running;
    const sorted = (counts: ReadonlyMap<string, number>) => [...counts.keys()].toSorted();
    return { changes: sorted(this.#changes), unknown: sorted(this.#unknown) };
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn += 1) {
      const replica = this.#replicas[turn % this.#replicas.length];
      if (replica === undefined) throw new Error("there is no gateway");
      await Promise.all([
        note(this.#changes, createAccount(replica)),
        note(this.#unknown, callUnknown(replica)),
        Bun.sleep(pauseMs),
      ]);
    }
  }
}

async function note(counts: Map<string, number>, answer: Promise<string>): Promise<void> {
  const text = await answer;
  counts.set(text, (counts.get(text) ?? 0) + 1);
}

async function createAccount(replica: Replica): Promise<string> {
  const name = `Account ${crypto.randomUUID()}`;
  const response = await sendAdmin(replica, "POST", "/accounts", { name });
  await response.text();
  return String(response.status);
}

async function callUnknown({ process }: Replica): Promise<string> {
  const { text } = generateApiKey((target) => crypto.getRandomValues(target));
  const response = await fetch(`${process.dataUrl}/v1/models`, {
    headers: { authorization: `Bearer ${text}` },
  });
  await response.text();
  return String(response.status);
}
