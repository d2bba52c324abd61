/**
 * What changes by the second: one stream of events for a browser. The tab that holds the lock reads
 * it for all tabs, and tells them. Plain HTTP has no locks: there each visible tab has its own.
 */
import { useEffect, useSyncExternalStore } from "react";
import type { LiveItems } from "./contract.ts";
import { sessionState, signInAgain } from "./session.ts";

type Topic = keyof LiveItems;
type State = ReadonlyMap<string, ReadonlyMap<string, unknown>>;

type Message =
  /** What a tab shows; nothing: it is hidden or gone. */
  | { readonly kind: "wants"; readonly tab: string; readonly names: readonly string[] }
  /** From the tab that reads from now on. */
  | { readonly kind: "who" }
  | { readonly kind: "all"; readonly state: State }
  | { readonly kind: "event"; readonly event: LiveEvent; readonly data: string };

type LiveEvent = "full" | "change" | "end" | "lost";

const shortestRetryMs = 2_000;
const longestRetryMs = 30_000;
/** Of all tabs, in one stream. */
const mostKeys = 10;
/** A tab that is hidden for so long does without. */
const hiddenMs = 30_000;
/** For what a page begins and ends to want, and for the answers of other tabs. */
const settleMs = 50;

const thisTab = String(Math.random());
const lockName = "sluice-live";
const channel = window.isSecureContext ? new BroadcastChannel(lockName) : undefined;

/** How many components of this tab want a topic; one of a key is `key` and its id. */
const wanted = new Map<string, number>();
/** What each tab wants, as far as this one has been told. */
const wantedBy = new Map<string, readonly string[]>();
const listeners = new Set<() => void>();
let state: State = new Map();
let lostAt: number | undefined;

let isAway = document.hidden;
let leave: ReturnType<typeof setTimeout> | undefined;
let settle: ReturnType<typeof setTimeout> | undefined;
/** Ends that this tab reads, or waits to; undefined: it does neither. */
let resign: (() => void) | undefined;
let isReader = false;
let source: EventSource | undefined;
let address = "";
let retryMs = shortestRetryMs;
let retry: ReturnType<typeof setTimeout> | undefined;

/**
 * The items of a topic by id; undefined until they are known, and of no topic. `key` takes the key's
 * id.
 */
export function useLive<Name extends Topic>(
  topic: Name | undefined,
  keyId?: string,
): ReadonlyMap<string, LiveItems[Name]> | undefined {
  const name = keyId === undefined ? topic : `${topic} ${keyId}`;
  useEffect(() => {
    if (name === undefined) return undefined;
    wanted.set(name, (wanted.get(name) ?? 0) + 1);
    updateSoon();
    return () => {
      const left = (wanted.get(name) ?? 1) - 1;
      if (left === 0) wanted.delete(name);
      else wanted.set(name, left);
      updateSoon();
    };
  }, [name]);
  const found = useSyncExternalStore(subscribe, () => topic && state.get(topic));
  // The contract of the API says what they are.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return found as ReadonlyMap<string, LiveItems[Name]> | undefined;
}

/** Since when, in milliseconds, what is shown is not live any more. */
export function useLostAt(): number | undefined {
  return useSyncExternalStore(subscribe, () => lostAt);
}

const nothing = new Map<string, unknown>();

/** Topics that the gateway cannot read at the moment: their items are earlier ones. */
export function useStale(): readonly string[] {
  return [...useSyncExternalStore(subscribe, () => state.get("stale") ?? nothing).keys()];
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(leave);
  const setAway = (value: boolean): void => {
    isAway = value;
    updateSoon();
  };
  if (document.hidden) leave = setTimeout(() => setAway(true), hiddenMs);
  else setAway(false);
});
window.addEventListener("pagehide", () => tell({ kind: "wants", tab: thisTab, names: [] }));

channel?.addEventListener("message", ({ data }: MessageEvent<Message & { user: unknown }>) => {
  // A tab of a user who was signed in before is about to load another page.
  if (data.user !== userId()) return;
  switch (data.kind) {
    case "wants":
      wantedBy.set(data.tab, data.names);
      if (isReader && !connect()) tell({ kind: "all", state });
      break;
    case "who":
      update();
      break;
    case "all":
      show(data.state);
      break;
    case "event":
      take(data.event, data.data);
      break;
  }
});

function tell(message: Message): void {
  channel?.postMessage({ ...message, user: userId() });
}

function userId(): string | undefined {
  const session = sessionState();
  return session.kind === "signed-in" ? session.session.user?.id : undefined;
}

function updateSoon(): void {
  clearTimeout(settle);
  settle = setTimeout(update, settleMs);
}

function update(): void {
  const names = isAway ? [] : [...wanted.keys()];
  wantedBy.set(thisTab, names);
  tell({ kind: "wants", tab: thisTab, names });
  if (names.length === 0) resign?.();
  else if (resign === undefined) apply();
  else if (isReader) connect();
}

/** Reads once no other tab does. */
function apply(): void {
  const over = Promise.withResolvers<undefined>();
  const waiting = new AbortController();
  resign = () => {
    resign = undefined;
    isReader = false;
    waiting.abort();
    over.resolve(undefined);
    disconnect();
  };
  const begin = (): Promise<undefined> => {
    if (waiting.signal.aborted) return over.promise;
    isReader = true;
    tell({ kind: "who" });
    updateSoon();
    return over.promise;
  };
  if (channel === undefined) void begin();
  // It rejects when this tab has stopped waiting.
  else navigator.locks.request(lockName, { signal: waiting.signal }, begin).catch(() => undefined);
}

/** Whether a new stream begins, for what all tabs want. */
function connect(): boolean {
  const next = addressOfStream();
  if (next === address) return false;
  disconnect();
  address = next;
  const opened = new EventSource(next);
  source = opened;
  const pass = (event: LiveEvent, data = ""): void => {
    tell({ kind: "event", event, data });
    take(event, data);
  };
  opened.addEventListener("full", ({ data }: MessageEvent<string>) => {
    retryMs = shortestRetryMs;
    pass("full", data);
  });
  opened.addEventListener("change", ({ data }: MessageEvent<string>) => pass("change", data));
  opened.addEventListener("end", () => {
    disconnect();
    pass("end");
  });
  opened.addEventListener("error", () => {
    disconnect();
    pass("lost");
    retry = setTimeout(connect, retryMs * (0.5 + Math.random() / 2));
    retryMs = Math.min(longestRetryMs, retryMs * 2);
  });
  return true;
}

function disconnect(): void {
  clearTimeout(retry);
  source?.close();
  address = "";
}

function addressOfStream(): string {
  const all = new Set([...wantedBy.values()].flat());
  const names = [...all].toSorted().map((name) => name.split(" "));
  const query = new URLSearchParams({
    topics: [...new Set(names.map(([topic = ""]) => topic))].join(","),
  });
  const keyIds = names.flatMap(([, id]) => id ?? []).slice(0, mostKeys);
  if (keyIds.length > 0) query.set("key_id", keyIds.join(","));
  return `/admin/v1/live?${query.toString()}`;
}

function take(event: LiveEvent, data: string): void {
  switch (event) {
    case "full":
      show(changed(new Map(), data));
      break;
    case "change":
      show(changed(state, data));
      break;
    case "lost":
      lostAt ??= Date.now();
      notify();
      break;
    case "end":
      void signInAgain().then((isBack) => isBack && updateSoon());
      break;
  }
}

function changed(before: State, data: string): State {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const topics = JSON.parse(data) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const next = new Map(before);
  for (const [topic, fields] of Object.entries(topics)) {
    const own = new Map(next.get(topic));
    for (const [id, item] of Object.entries(fields)) {
      if (item === null) own.delete(id);
      else own.set(id, item);
    }
    next.set(topic, own);
  }
  return next;
}

function show(next: State): void {
  state = next;
  lostAt = undefined;
  notify();
}

function notify(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
