import type {
  Allotment,
  AllotmentNews,
  AllotmentStore,
  AllotmentWish,
} from "../../../allotments.ts";
import { scriptOf, type ValkeyConnection } from "../connection/valkey-connection.ts";
import { listOf } from "../connection/list-of.ts";
import { allotScript, greetScript } from "./allot-script.ts";

export interface ValkeyAllotmentsOptions {
  readonly connection: ValkeyConnection;
  /** Unique among all processes and never used again. */
  readonly process: string;
}

const allot = scriptOf("allot", allotScript);
const greet = scriptOf("greet", greetScript);
export const placeScripts = [allot, greet];
const channel = "sluice:places";
const processesKey = "sluice:places:processes";
/** Longer than a process greets, several times over. */
const processLifeMs = 5_000;

/** Divides places with a script for each bound, under a key for each bound. */
export class ValkeyAllotments implements AllotmentStore {
  readonly process: string;
  readonly #connection: ValkeyConnection;
  #stopHearing: () => void = () => undefined;

  constructor({ connection, process }: ValkeyAllotmentsOptions) {
    this.#connection = connection;
    this.process = process;
  }

  get isUp(): boolean {
    return this.#connection.isUp;
  }

  async exchange(wish: AllotmentWish): Promise<Allotment> {
    const { limit, sequence, used, kept, wanted, wantedFirst, accounts } = wish;
    const numbers = [limit, sequence, used, kept, wanted, wantedFirst, accounts];
    const reply = await this.#connection.run(
      allot,
      [keyOf(wish.bound)],
      [this.process, channel, ...numbers.map(String)],
    );
    const [places, fair] = numbersOf(reply);
    if (places === undefined || fair === undefined) throw new Error("the wish came too late");
    return { places, fair: fair < 0 ? Infinity : fair };
  }

  async greet(): Promise<readonly string[]> {
    const reply = await this.#connection.run(
      greet,
      [processesKey],
      [this.process, String(processLifeMs)],
    );
    return listOf(reply).map(String).toSorted();
  }

  onNews(hear: (news: AllotmentNews) => void): void {
    this.#stopHearing = this.#connection.subscribe(channel, (message) => {
      const news = this.#read(message);
      if (news !== undefined) hear(news);
    });
  }

  onChange(changed: () => void): void {
    this.#connection.onChange(changed);
  }

  close(): void {
    this.#stopHearing();
  }

  #read(message: string): AllotmentNews | undefined {
    const [is, key = "", ...processes] = message.split(" ");
    const bound = boundOf(key);
    if (bound === undefined) return undefined;
    const isNamed = processes.includes(this.process);
    if (is === "wanted") return isNamed ? undefined : { bound, is };
    return is === "free" && isNamed ? { bound, is } : undefined;
  }
}

const keyStart = "sluice:places:{";

/** Names come from the configuration: spaces and braces are escaped. */
function keyOf(bound: string): string {
  return `${keyStart}${encodeURIComponent(bound)}}`;
}

function boundOf(key: string): string | undefined {
  if (!key.startsWith(keyStart) || !key.endsWith("}")) return undefined;
  try {
    return decodeURIComponent(key.slice(keyStart.length, -1));
  } catch {
    return undefined;
  }
}

function numbersOf(reply: unknown): readonly number[] {
  return listOf(reply).filter((part) => typeof part === "number");
}
