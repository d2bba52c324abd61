import type {
  Allotment,
  AllotmentNews,
  AllotmentStore,
  AllotmentWish,
} from "../../../allotments.ts";
import { scriptOf, type ValkeyConnection } from "../connection/valkey-connection.ts";
import { listOf } from "../connection/list-of.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { allotScript } from "./allot-script.ts";

export interface ValkeyAllotmentsOptions {
  readonly connection: ValkeyConnection;
  readonly fleet: Pick<Fleet, "worker" | "workers" | "number">;
}

const allot = scriptOf("allot", allotScript);
export const placeScripts = [allot];
const channel = "sluice:places";

/** Divides places with a script for each bound, under a key for each bound. */
export class ValkeyAllotments implements AllotmentStore {
  readonly #connection: ValkeyConnection;
  readonly #fleet: ValkeyAllotmentsOptions["fleet"];
  #stopHearing: () => void = () => undefined;

  constructor({ connection, fleet }: ValkeyAllotmentsOptions) {
    this.#connection = connection;
    this.#fleet = fleet;
  }

  get rank() {
    const { number, workers } = this.#fleet;
    return { number, workers };
  }

  get isUp(): boolean {
    return this.#connection.isUp;
  }

  async exchange(wish: AllotmentWish): Promise<Allotment> {
    const { limit, sequence, used, kept, wanted, wantedFirst, accounts, allotted } = wish;
    const numbers = [limit, sequence, used, kept, wanted, wantedFirst, accounts, allotted];
    const reply = await this.#connection.run(
      allot,
      [keyOf(wish.bound)],
      [this.#fleet.worker, channel, ...numbers.map(String)],
    );
    const [places, fair, isLost, free = 0] = numbersOf(reply);
    if (places === undefined || fair === undefined) throw new Error("the wish came too late");
    return { places, fair: fair < 0 ? Infinity : fair, isLost: isLost === 1, free };
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
    const isNamed = processes.includes(this.#fleet.worker);
    if (is === "wanted" || is === "lost") return isNamed ? undefined : { bound, is };
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
