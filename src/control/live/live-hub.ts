import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import { liveGatewaySchema, type LiveTopic, newestCallSchema } from "../contract/live.ts";
import { viewRow } from "../platform/processes.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";
import { readKeyLive } from "./live-operations.ts";
import { viewGates, viewKeys, viewProcesses, viewTargets } from "./live-view.ts";

/** Items as JSON, by id. */
type Items = ReadonlyMap<string, string>;
type Snapshot = ReadonlyMap<LiveTopic, Items>;

export interface WantedLive {
  readonly call: Pick<AdminCall, "principal" | "isStillSignedIn">;
  readonly topics: readonly LiveTopic[];
  /** For the topic `key`; the principal may see them. */
  readonly keyIds: readonly string[];
}

const tickMs = 1_000;
/** An older call is not told of. */
const newestCallMs = 3_600_000;
/** Ticks between looks whether who watches is still signed in. */
const recheckTicks = 5;
const mostConnections = 200;
const mostOfOneUser = 10;

/**
 * Reads what is live once a second, as long as somebody watches: once for each audience (everything,
 * or one account) and each key, however many watch it.
 */
export class LiveHub {
  readonly #services: AdminServices;
  readonly #watchers = new Set<LiveWatcher>();
  #tick = 0;
  #stopTimer: (() => void) | undefined;

  constructor(services: AdminServices) {
    this.#services = services;
  }

  /** Throws 429 when too many watch. */
  watch(wanted: WantedLive): FrameSource {
    const ofUser = [...this.#watchers].filter(({ user }) => user === userOf(wanted)).length;
    if (ofUser >= mostOfOneUser || this.#watchers.size >= mostConnections) {
      throw new GatewayError("too_many_requests", {
        message: "Too many live streams are open. Close some, and retry your request.",
        headers: { "retry-after": "5" },
      });
    }
    const watcher = new LiveWatcher(wanted, () => this.#watchers.delete(watcher));
    this.#watchers.add(watcher);
    this.#stopTimer ??= this.#plan(0);
    return watcher;
  }

  /** Ends all streams; those who watch connect again. */
  close(): void {
    this.#stopTimer?.();
    for (const watcher of this.#watchers) watcher.end("");
  }

  #plan(delayMs: number): () => void {
    return this.#services.clock.schedule(() => void this.#run(), delayMs);
  }

  async #run(): Promise<void> {
    this.#tick += 1;
    const keys = new Map<string, Promise<string>>();
    const byAudience = Map.groupBy(this.#watchers, ({ accountId = "" }) => accountId);
    // What cannot be read is told once it can.
    await Promise.allSettled(
      Array.from(byAudience, async ([audience, watchers]) => {
        const topics = new Set(watchers.flatMap((watcher) => watcher.topics));
        const snapshot = await this.#read(audience || undefined, topics);
        for (const watcher of watchers) {
          const own = new Map<string, string>();
          for (const id of watcher.keyIds) {
            const key = keys.get(id) ?? this.#readKey(id);
            keys.set(id, key);
            own.set(id, await key);
          }
          const all = own.size === 0 ? snapshot : new Map([...snapshot, ["key", own] as const]);
          watcher.offer(all, this.#tick);
        }
      }),
    );
    if (this.#tick % recheckTicks === 0) await this.#recheck();
    const isWatched = this.#watchers.size > 0;
    this.#stopTimer = isWatched ? this.#plan(tickMs) : undefined;
  }

  async #recheck(): Promise<void> {
    await Promise.all(
      Array.from(this.#watchers, async (watcher) => {
        if (!(await watcher.isStillSignedIn())) watcher.end("event: end\ndata: {}\n\n");
      }),
    );
  }

  async #read(accountId: string | undefined, topics: ReadonlySet<LiveTopic>): Promise<Snapshot> {
    const { live, platform, clock } = this.#services;
    const publicIds = topics.has("keys") ? {} : { publicIds: [] };
    const facts = await live.facts({ accountId, ...publicIds });
    const readers: Record<LiveTopic, () => Items | Promise<Items>> = {
      gateways: async () => {
        const rows = await this.#services.processRows();
        const views = rows.map((row) => liveGatewaySchema.parse(viewRow(row)));
        return byId(views, ({ id }) => id);
      },
      processes: () => byId(viewProcesses(facts), ({ process }) => String(process)),
      targets: () => byId(viewTargets(platform(), facts), ({ id }) => id),
      gates: () => byId(viewGates(facts), ({ kind, name }) => `${kind}:${name}`),
      keys: async () => byId(await viewKeys(live, facts, clock.now()), (use) => use.key_id),
      calls: () => this.#readNewestCall(accountId),
      // Of one key alone: `#readKey`.
      key: () => new Map(),
    };
    const snapshot = new Map<LiveTopic, Items>();
    for (const topic of topics) snapshot.set(topic, await readers[topic]());
    return snapshot;
  }

  async #readNewestCall(accountId: string | undefined): Promise<Items> {
    const { reports, clock } = this.#services;
    const now = clock.now();
    const filter = { since: now - newestCallMs, until: now + newestCallMs, accountId };
    const { items } = await reports.calls(filter, { limit: 1 });
    return byId(
      items.map((call) => viewAs(newestCallSchema, call)),
      () => "newest",
    );
  }

  async #readKey(id: string): Promise<string> {
    return JSON.stringify(await readKeyLive({ id }, this.#services));
  }
}

/** One stream: the whole first, then what has changed. A slow reader gets only the newest. */
class LiveWatcher extends WaitingReader implements FrameSource {
  readonly topics: readonly LiveTopic[];
  readonly keyIds: readonly string[];
  readonly accountId: string | undefined;
  readonly user: string;
  readonly isStillSignedIn: () => Promise<boolean>;
  readonly cancel: () => void;
  #newest: { readonly snapshot: Snapshot; readonly tick: number } | undefined;
  #sent: Snapshot | undefined;
  /** Undefined until it ends. */
  #lastFrame: string | undefined;

  constructor(wanted: WantedLive, cancel: () => void) {
    super();
    this.topics = wanted.topics;
    this.keyIds = wanted.keyIds;
    this.accountId = wanted.call.principal.accountId;
    this.user = userOf(wanted);
    this.isStillSignedIn = wanted.call.isStillSignedIn;
    this.cancel = cancel;
  }

  get isOver(): boolean {
    return this.#lastFrame === "";
  }

  offer(snapshot: Snapshot, tick: number): void {
    this.#newest = { snapshot, tick };
    this.wake();
  }

  end(lastFrame: string): void {
    this.#lastFrame = lastFrame;
    this.wake();
  }

  take(): string | undefined {
    if (this.#lastFrame !== undefined) {
      const frame = this.#lastFrame || undefined;
      this.#lastFrame = "";
      return frame;
    }
    if (this.#newest === undefined) return undefined;
    const { snapshot, tick } = this.#newest;
    this.#newest = undefined;
    const sent = this.#sent;
    const parts = this.topics.flatMap((topic) => changeOf(topic, snapshot, sent) ?? []);
    this.#sent = snapshot;
    if (parts.length === 0) return undefined;
    const event = sent === undefined ? "full" : "change";
    return `id: ${tick}\nevent: ${event}\ndata: {${parts.join(",")}}\n\n`;
  }
}

/** What differs in a topic, as a field of JSON; null for an item that is gone. */
function changeOf(
  topic: LiveTopic,
  snapshot: Snapshot,
  sent: Snapshot | undefined,
): string | undefined {
  const [items, before] = [snapshot.get(topic), sent?.get(topic)];
  if (items === undefined) return undefined;
  const changed = [...items].filter(([id, item]) => before?.get(id) !== item);
  const gone = [...(before?.keys() ?? [])].filter((id) => !items.has(id));
  if (before !== undefined && changed.length + gone.length === 0) return undefined;
  const fields = [...changed, ...gone.map((id) => [id, "null"] as const)];
  return `"${topic}":{${fields.map(([id, item]) => `${JSON.stringify(id)}:${item}`).join(",")}}`;
}

function byId<Item>(items: readonly Item[], idOf: (item: Item) => string): Items {
  return new Map(items.map((item) => [idOf(item), JSON.stringify(item)]));
}

function userOf({ call: { principal } }: Pick<WantedLive, "call">): string {
  return principal.userId ?? principal.kind;
}
