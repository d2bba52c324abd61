/** Who is signed in, for all of the page; the session itself is a cookie that scripts cannot read. */
import { useSyncExternalStore } from "react";
import type { SessionView } from "./contract.ts";

export type SessionState =
  | { readonly kind: "unknown" | "none" }
  | { readonly kind: "signed-in"; readonly session: SessionView; readonly hasExpired: boolean };

let state: SessionState = { kind: "unknown" };
let lastUser: string | undefined;
let waiting: PromiseWithResolvers<boolean> | undefined;
const listeners = new Set<() => void>();
/** Tells the browser's other tabs, whose token for changes is outdated. */
const tabs = new BroadcastChannel("sluice-session");
/** Set by the client, which can ask who is signed in. */
let look: () => Promise<void> = () => Promise.resolve();

tabs.onmessage = () => void look();

export function onOtherTab(ask: () => Promise<void>): void {
  look = ask;
}

export function useSession(): SessionState {
  return useSyncExternalStore(subscribe, sessionState);
}

export function sessionState(): SessionState {
  return state;
}

/** A session has begun, or is known again. Another user gets a page without anything of the last. */
export function signedIn(session: SessionView, isNew: boolean): void {
  const before = lastUser;
  lastUser = session.user?.id;
  if (before !== undefined && before !== lastUser) return window.location.assign("/");
  change({ kind: "signed-in", session, hasExpired: false });
  waiting?.resolve(true);
  waiting = undefined;
  if (isNew) tabs.postMessage("signed in");
}

/** Nobody is signed in, or no longer on purpose. */
export function signedOut(isNew: boolean): void {
  change({ kind: "none" });
  waiting?.resolve(false);
  waiting = undefined;
  if (isNew) tabs.postMessage("signed out");
}

/** Keeps the page as it is, until the same user has signed in again: true. */
export function signInAgain(): Promise<boolean> {
  if (state.kind !== "signed-in") return Promise.resolve(false);
  change({ ...state, hasExpired: true });
  waiting ??= Promise.withResolvers<boolean>();
  return waiting.promise;
}

function change(next: SessionState): void {
  state = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
