import { generateApiKey } from "../../../src/domain/keys/api-key.ts";
import type { Machine } from "../machine-stack.ts";
import { sendAdmin } from "../stack-admin.ts";

const pauseMs = 150;

/** Changes at the control plane, and calls with keys that do not exist, at each gateway in turn. */
export class ControlTraffic {
  readonly #machines: readonly Machine[];
  readonly #running: Promise<void>;
  readonly #changes = new Map<string, number>();
  readonly #unknown = new Map<string, number>();
  #isOver = false;

  constructor(machines: readonly Machine[]) {
    this.#machines = machines;
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
      const machine = this.#machines[turn % this.#machines.length];
      if (machine === undefined) throw new Error("there is no gateway");
      await Promise.all([
        note(this.#changes, createAccount(machine)),
        note(this.#unknown, callUnknown(machine)),
        Bun.sleep(pauseMs),
      ]);
    }
  }
}

async function note(counts: Map<string, number>, answer: Promise<string>): Promise<void> {
  const text = await answer;
  counts.set(text, (counts.get(text) ?? 0) + 1);
}

async function createAccount(machine: Machine): Promise<string> {
  const name = `Account ${crypto.randomUUID()}`;
  const response = await sendAdmin(machine, "POST", "/accounts", { name });
  await response.text();
  return String(response.status);
}

async function callUnknown({ process }: Machine): Promise<string> {
  const { text } = generateApiKey((target) => crypto.getRandomValues(target));
  const response = await fetch(`${process.dataUrl}/v1/models`, {
    headers: { authorization: `Bearer ${text}` },
  });
  await response.text();
  return String(response.status);
}
