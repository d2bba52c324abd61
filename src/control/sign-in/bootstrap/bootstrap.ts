import { randomBase62, type RandomBytes } from "../../../domain/keys/base62.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Secret } from "../../../domain/keys/secret.ts";
import type { ControlStore, ControlView } from "../../../store/control-store.ts";
import { isSameText } from "../same-text.ts";
import { sha256 } from "../sessions/sessions.ts";

/** A token that lay about unused for so long may have been seen by others. */
const lifetimeMs = 60 * 60 * 1000;

export interface BootstrapOptions {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Of the configuration; undefined: one is made. */
  readonly token: Secret | undefined;
  /** Tells whoever started the process. `isConfigured`: they know it already. */
  readonly onBootstrapToken: (token: {
    readonly text: string;
    readonly isConfigured: boolean;
  }) => void;
}

/** Lets the first operator be made with a token that is told once and works once. */
export class Bootstrap {
  readonly #options: BootstrapOptions;
  #pending: { readonly digest: string; readonly expiresAt: number } | undefined;

  constructor(options: BootstrapOptions) {
    this.#options = options;
  }

  /** Tells the token if there is no operator yet. Throws `StorageUnavailable`: call it again. */
  async start(): Promise<void> {
    const { store, clock, random, token, onBootstrapToken } = this.#options;
    if (this.#pending !== undefined || (await store.read(hasOperator))) return;
    const text = token?.reveal() ?? randomBase62(43, random);
    this.#pending = { digest: sha256(text), expiresAt: clock.monotonic() + lifetimeMs };
    onBootstrapToken({ text, isConfigured: token !== undefined });
  }

  /** Whether a text is the token and its time is not over. */
  isRight(text: string): boolean {
    const isSame = isSameText(sha256(text), this.#pending?.digest ?? sha256(""));
    const expiresAt = this.#pending?.expiresAt ?? -Infinity;
    return isSame && this.#options.clock.monotonic() < expiresAt;
  }

  /** There is an operator now: the token is worth nothing any more. */
  end(): void {
    this.#pending = undefined;
  }
}

export async function hasOperator(view: ControlView): Promise<boolean> {
  const { items } = await view.users.list({ role: "operator" }, { limit: 1 });
  return items.length > 0;
}
