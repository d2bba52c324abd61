import type { Allotment, AllotmentNews, AllotmentWish } from "../../../../src/store/allotments.ts";
import type { VirtualTime } from "../../virtual-time.ts";
import { ModelledScript, type ToldNews } from "./modelled-script.ts";

/** Times that the script takes at the server, in milliseconds. */
export interface PlaceTerms {
  readonly scriptMs: number;
  /** For each process that has or wants places of the bound. */
  readonly fieldMs: number;
  /** The same, for each division of less than all want. */
  readonly divisionMs: number;
  /** To tell news to one process. */
  readonly newsMs: number;
}

export interface PlacesServerOptions {
  readonly time: VirtualTime;
  readonly terms: PlaceTerms;
  /** Time on the network, one way. */
  readonly networkMs: number;
}

export type Hear = (news: AllotmentNews) => void;

/** The places in the memory of the server, and the channel of their news. */
export class PlacesServer {
  readonly #options: PlacesServerOptions;
  readonly #bounds = new Map<string, ModelledScript>();
  readonly #listeners = new Map<string, Hear>();
  exchanges = 0;
  /** Messages to processes. */
  told = 0;

  constructor(options: PlacesServerOptions) {
    this.#options = options;
  }

  /** Places of a bound that are allotted. */
  heldAt(bound: string): number {
    return this.#bounds.get(bound)?.heldAt(this.#now) ?? 0;
  }

  listen(process: string, hear: Hear): void {
    this.#listeners.set(process, hear);
  }

  stopTelling(process: string): void {
    this.#listeners.delete(process);
  }

  flush(): void {
    this.#bounds.clear();
  }

  /** Runs the script; returns its answer, and how long it takes. Undefined: it came too late. */
  exchange(me: string, { bound, ...wish }: AllotmentWish): [Allotment | undefined, number] {
    const script = this.#bounds.get(bound) ?? new ModelledScript();
    this.#bounds.set(bound, script);
    this.exchanges += 1;
    const { reply, news, fields, scarceDivisions } = script.run(me, wish, this.#now);
    const { scriptMs, fieldMs, divisionMs, newsMs } = this.#options.terms;
    const dividedMs = fields * (fieldMs + divisionMs * scarceDivisions);
    const takesMs = scriptMs + dividedMs + news.length * this.#listeners.size * newsMs;
    for (const each of news) this.#tell(bound, each, takesMs);
    const [places, fair, isLost, free = 0] = reply;
    if (places === undefined || fair === undefined) return [undefined, takesMs];
    return [{ places, fair: fair < 0 ? Infinity : fair, isLost: isLost === 1, free }, takesMs];
  }

  /** All hear all news; each that is not concerned does nothing. */
  #tell(bound: string, { is, processes }: ToldNews, takesMs: number): void {
    const { time, networkMs } = this.#options;
    this.told += this.#listeners.size;
    for (const [process, hear] of this.#listeners) {
      if ((is !== "free") === processes.includes(process)) continue;
      time.schedule(() => hear({ bound, is }), takesMs + networkMs);
    }
  }

  get #now(): number {
    return Math.floor(this.#options.time.now);
  }
}
