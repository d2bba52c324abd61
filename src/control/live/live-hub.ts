import type { KeySecret } from "../../domain/keys/key.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { Principal } from "../../domain/principal.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { FrameSource } from "../../edge/replies/event-stream.ts";
import {
  type KeyUseView,
  liveGatewaySchema,
  type LiveTopic,
  newestCallSchema,
} from "../contract/live.ts";
import { requireRoom } from "../operation/room.ts";
import { viewRow } from "../platform/processes.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";
import { viewKeyLive, workingIds } from "./live-operations.ts";
import { viewGates, viewKeys, viewProcesses, viewTargets } from "./live-view.ts";

/** Items as JSON, by id. */
type Items = ReadonlyMap<string, string>;
/** `stale` has the topics that could not be read: their items are earlier ones. */
type Snapshot = ReadonlyMap<LiveTopic | "stale", Items>;
const noItems: Items = new Map();
type SecretsOfKeys = ReadonlyMap<string, readonly KeySecret[]>;
const noSecrets: SecretsOfKeys = new Map();

/** What all that watch are told from. */
interface Now {
  readonly facts: readonly LiveFacts[];
  readonly uses: Promise<readonly KeyUseView[]>;
  /** Of all keys that are watched alone. */
  readonly keys: Promise<Items>;
}

export interface WantedLive {
  readonly call: Pick<AdminCall, "principal" | "isStillSignedIn">;
  readonly topics: readonly LiveTopic[];
  /** For the topic `key`; the principal may see them. */
  readonly keyIds: readonly string[];
}

const tickMs = 1_000;
/** An older call is not told of. */
const newestCallMs = 3_600_000;
/** Between looks whether who watches is still signed in. */
const recheckMs = 4_000;
const roomOfStreams = { ofUser: 10, all: 300, what: "live streams" };
/** For keys that are watched alone. */
const roomOfKeys = { ofUser: 100, all: 300, what: "live streams of keys" };

/** Reads what is live once a second for everybody, as long as somebody watches. */
export class LiveHub {
  readonly #services: AdminServices;
  readonly #watchers = new Set<LiveWatcher>();
  /** Of the last second, by account; undefined: of those who see all. */
  #snapshots: ReadonlyMap<string | undefined, Snapshot> = new Map();
  #tick = 0;
  #isClosed = false;
  #stopReads: (() => void) | undefined;
  #stopRechecks: (() => void) | undefined;

  constructor(services: AdminServices) {
    this.#services = services;
  }

  /** Throws 429 when too many watch, and 503 once it is closed. */
  watch(wanted: WantedLive): FrameSource {
    if (this.#isClosed) {
      throw new GatewayError("model_unavailable", {
        message: "This process is ending. Retry your request; another one answers it.",
        headers: { "retry-after": "1" },
      });
    }
    const { principal } = wanted.call;
    requireRoom(this.#watchers, principal, roomOfStreams);
    const ofKeys = [...this.#watchers].flatMap((each) => each.keyIds.map(() => each));
    if (wanted.keyIds.length > 0) requireRoom(ofKeys, principal, roomOfKeys);
    const watcher = new LiveWatcher(wanted, () => this.#watchers.delete(watcher));
    this.#watchers.add(watcher);
    this.#stopReads ??= this.#plan(() => this.#run(), 0);
    this.#stopRechecks ??= this.#plan(() => this.#recheck(), recheckMs);
    return watcher;
  }

  /** Ends all streams; those who watch connect again. */
  close(): void {
    this.#isClosed = true;
    this.#stopReads?.();
    this.#stopRechecks?.();
    for (const watcher of this.#watchers) watcher.end("");
  }

  #plan(run: () => Promise<void>, delayMs: number): () => void {
    return this.#services.clock.schedule(() => void run(), delayMs);
  }

  /** Undefined, without a plan, once nobody watches. */
  #planNext(run: () => Promise<void>, delayMs: number): (() => void) | undefined {
    return this.#isClosed || this.#watchers.size === 0 ? undefined : this.#plan(run, delayMs);
  }

  async #run(): Promise<void> {
    this.#tick += 1;
    const watchers = [...this.#watchers];
    if (watchers.length === 0) {
      this.#stopReads = undefined;
      return;
    }
    const now = await this.#readNow(watchers);
    const snapshots = new Map<string | undefined, Snapshot>();
    await Promise.all(
      Array.from(
        Map.groupBy(watchers, ({ principal }) => principal.accountId),
        async ([accountId, of]) => {
          const topics = new Set(of.flatMap((watcher) => watcher.topics));
          snapshots.set(accountId, await this.#read(accountId, topics, now));
        },
      ),
    );
    this.#snapshots = snapshots;
    for (const watcher of watchers) {
      const snapshot = snapshots.get(watcher.principal.accountId);
      if (snapshot !== undefined) watcher.offer(ownOf(snapshot, watcher), this.#tick);
    }
    this.#stopReads = this.#planNext(() => this.#run(), tickMs);
  }

  /** One read of facts and one of limits, for all that watch. */
  async #readNow(watchers: readonly LiveWatcher[]): Promise<Now> {
    const { live, clock } = this.#services;
    const keyIds = new Set(watchers.flatMap((watcher) => watcher.keyIds));
    const ofKeys = watchers.filter(({ topics }) => topics.includes("keys"));
    const now = clock.now();
    const secrets = this.#readSecrets(keyIds);
    const known = await secrets.catch(() => noSecrets);
    const facts = await live.facts({
      publicIds: [...known.values()].flatMap((each) => workingIds(each, now)),
      accountIds: [...new Set(ofKeys.map(({ principal }) => principal.accountId))],
    });
    const uses = viewKeys(live, facts, now);
    const keys = this.#viewWatchedKeys(secrets, uses);
    // Whose items they are tells of a failure.
    void Promise.allSettled([uses, keys]);
    return { facts, uses, keys };
  }

  async #readSecrets(keyIds: ReadonlySet<string>): Promise<SecretsOfKeys> {
    if (keyIds.size === 0) return noSecrets;
    return this.#services.store.read(async ({ secrets }) => {
      const found = new Map<string, readonly KeySecret[]>();
      for (const id of keyIds) found.set(id, await secrets.ofKey(id));
      return found;
    });
  }

  async #viewWatchedKeys(
    reading: Promise<SecretsOfKeys>,
    uses: Promise<readonly KeyUseView[]>,
  ): Promise<Items> {
    const found = await reading;
    const useOf = new Map((await uses).map((use) => [use.key_id, use]));
    return new Map(
      Array.from(found, ([id, secrets]) => {
        const view = viewKeyLive({ use: useOf.get(id), secrets }, this.#services);
        return [id, JSON.stringify(view)];
      }),
    );
  }

  async #recheck(): Promise<void> {
    // Who cannot be looked up is looked up again.
    await Promise.allSettled(
      Array.from(this.#watchers, async (watcher) => {
        if (!(await watcher.isStillSignedIn())) watcher.end("event: end\ndata: {}\n\n");
      }),
    );
    this.#stopRechecks = this.#planNext(() => this.#recheck(), recheckMs);
  }

  async #read(
    accountId: string | undefined,
    topics: ReadonlySet<LiveTopic>,
    { facts, uses, keys }: Now,
  ): Promise<Snapshot> {
    const isSeen = (use: KeyUseView) => accountId === undefined || use.account_id === accountId;
    const readers: Record<LiveTopic, () => Items | Promise<Items>> = {
      gateways: async () => {
        const rows = await this.#services.lastProcessRows();
        const views = rows.map((row) => liveGatewaySchema.parse(viewRow(row)));
        return byId(views, ({ id }) => id);
      },
      processes: () => byId(viewProcesses(facts), ({ process }) => String(process)),
      targets: () => byId(viewTargets(this.#services.platform(), facts), ({ id }) => id),
      gates: () => byId(viewGates(facts), ({ kind, name }) => `${kind}:${name}`),
      keys: async () => byId((await uses).filter(isSeen), (use) => use.key_id),
      calls: () => this.#readNewestCall(accountId),
      // Of all streams: each takes its own.
      key: () => keys,
    };
    const snapshot = new Map<LiveTopic | "stale", Items>();
    const stale = new Map<string, string>();
    for (const topic of topics) {
      try {
        snapshot.set(topic, await readers[topic]());
      } catch {
        stale.set(topic, "true");
        const earlier = this.#snapshots.get(accountId)?.get(topic);
        if (earlier !== undefined) snapshot.set(topic, earlier);
      }
    }
    return snapshot.set("stale", stale);
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
}

/** One stream: the whole first, then what has changed. A slow reader gets only the newest. */
class LiveWatcher extends WaitingReader implements FrameSource {
  readonly topics: readonly LiveTopic[];
  readonly keyIds: readonly string[];
  readonly principal: Principal;
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
    this.principal = wanted.call.principal;
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
    const told = [...this.topics, "stale"] as const;
    const parts = told.flatMap((topic) => changeOf(topic, snapshot, sent) ?? []);
    this.#sent = snapshot;
    if (parts.length === 0) return undefined;
    const event = sent === undefined ? "full" : "change";
    return `id: ${tick}\nevent: ${event}\ndata: {${parts.join(",")}}\n\n`;
  }
}

/** What differs in a topic, as a field of JSON; null for an item that is gone. */
function changeOf(
  topic: LiveTopic | "stale",
  snapshot: Snapshot,
  sent: Snapshot | undefined,
): string | undefined {
  const items = snapshot.get(topic);
  const before = sent?.get(topic) ?? (topic === "stale" ? noItems : undefined);
  if (items === undefined) return undefined;
  const changed = [...items].filter(([id, item]) => before?.get(id) !== item);
  const gone = [...(before?.keys() ?? [])].filter((id) => !items.has(id));
  if (before !== undefined && changed.length + gone.length === 0) return undefined;
  const fields = [...changed, ...gone.map((id) => [id, "null"] as const)];
  return `"${topic}":{${fields.map(([id, item]) => `${JSON.stringify(id)}:${item}`).join(",")}}`;
}

/** What one stream tells: of its own topics and keys. */
function ownOf(
  snapshot: Snapshot,
  { topics, keyIds }: Pick<WantedLive, "topics" | "keyIds">,
): Snapshot {
  const only = (of: "stale" | "key", names: readonly string[]) =>
    new Map([...(snapshot.get(of) ?? noItems)].filter(([name]) => names.includes(name)));
  return new Map([
    ...snapshot,
    ["key", only("key", keyIds)] as const,
    ["stale", only("stale", topics)] as const,
  ]);
}

function byId<Item>(items: readonly Item[], idOf: (item: Item) => string): Items {
  return new Map(items.map((item) => [idOf(item), JSON.stringify(item)]));
}
