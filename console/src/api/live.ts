/**
 * What changes by the second: one stream of events for all that a tab shows. A hidden tab has none,
 * so that a browser with many tabs has one connection.
 */
import { useEffect, useSyncExternalStore } from "react";
import type { LiveItems } from "./contract.ts";
import { signInAgain } from "./session.ts";

type Topic = keyof LiveItems;
type Items = ReadonlyMap<string, unknown>;

const shortestRetryMs = 2_000;
const longestRetryMs = 30_000;

/** How many components want a topic; one of a key is `key` and its id. */
const wanted = new Map<string, number>();
const listeners = new Set<() => void>();
let items: ReadonlyMap<string, Items> = new Map();
let source: EventSource | undefined;
let address = "";
let retryMs = shortestRetryMs;
let timer: ReturnType<typeof setTimeout> | undefined;

/** The items of a topic by id; undefined until they are known. `key` takes the key's id. */
export function useLive<Name extends Topic>(
  topic: Name,
  keyId?: string,
): ReadonlyMap<string, LiveItems[Name]> | undefined {
  const name = keyId === undefined ? topic : `${topic} ${keyId}`;
  useEffect(() => {
    wanted.set(name, (wanted.get(name) ?? 0) + 1);
    connectSoon();
    return () => {
      const left = (wanted.get(name) ?? 1) - 1;
      if (left === 0) wanted.delete(name);
      else wanted.set(name, left);
      connectSoon();
    };
  }, [name]);
  const found = useSyncExternalStore(subscribe, () => items.get(topic));
  // The contract of the API says what they are.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return found as ReadonlyMap<string, LiveItems[Name]> | undefined;
}

document.addEventListener("visibilitychange", () => connectSoon());

/** Once for all that a page begins and ends to want. */
function connectSoon(waitMs = 0): void {
  clearTimeout(timer);
  timer = setTimeout(connect, waitMs);
}

function connect(): void {
  const next = document.hidden || wanted.size === 0 ? "" : addressOfStream();
  if (next === address && source?.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = undefined;
  address = next;
  if (next === "") return;
  const opened = new EventSource(next);
  source = opened;
  opened.addEventListener("full", ({ data }: MessageEvent<string>) => {
    retryMs = shortestRetryMs;
    take(new Map(), data);
  });
  opened.addEventListener("change", ({ data }: MessageEvent<string>) => take(items, data));
  opened.addEventListener("end", () => {
    opened.close();
    void signInAgain().then((isBack) => isBack && connectSoon());
  });
  opened.addEventListener("error", () => {
    // The browser itself connects again only after a network error.
    if (opened.readyState !== EventSource.CLOSED) return;
    retryMs = Math.min(longestRetryMs, retryMs * 2);
    connectSoon(retryMs * (0.5 + Math.random() / 2));
  });
}

function addressOfStream(): string {
  const names = [...wanted.keys()].toSorted().map((name) => name.split(" "));
  const topics = new Set(names.map(([topic = ""]) => topic));
  const query = new URLSearchParams({ topics: [...topics].join(",") });
  const keyId = names.find(([, id]) => id !== undefined)?.[1];
  if (keyId !== undefined) query.set("key_id", keyId);
  return `/admin/v1/live?${query.toString()}`;
}

function take(before: ReadonlyMap<string, Items>, text: string): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const changed = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const next = new Map(before);
  for (const [topic, fields] of Object.entries(changed)) {
    const own = new Map(next.get(topic));
    for (const [id, item] of Object.entries(fields)) {
      if (item === null) own.delete(id);
      else own.set(id, item);
    }
    next.set(topic, own);
  }
  items = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
