import { randomBase62, type RandomBytes } from "../../../domain/keys/base62.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Secret } from "../../../domain/keys/secret.ts";
import type { ControlStore, ControlView } from "../../../store/repositories/control-store.ts";
import { isSameText, sha256 } from "../sessions/sessions.ts";

/** Short, because a printed token stays readable in terminals and logs. */
const lifetimeMs = 60 * 60 * 1000;

export interface BootstrapOptions {
  readonly store: Pick<ControlStore, "read" | "change">;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** The configured token; undefined: a random one is generated. */
  readonly token: Secret | undefined;
  /** Called with the token to show. If `isConfigured`, the operator already has it. */
  readonly onBootstrapToken: (token: IssuedToken) => void;
}

export interface IssuedToken {
  readonly text: string;
  readonly isConfigured: boolean;
}

/** The one-time token that creates the first operator. */
export class Bootstrap {
  readonly #options: BootstrapOptions;
  #pending: { readonly digest: string; readonly expiresAt: number } | undefined;

  constructor(options: BootstrapOptions) {
    this.#options = options;
  }

  /** Issues the token if there is no operator yet. Call again after `StorageUnavailable`. */
  async start(): Promise<void> {
    const { store, clock, random, token, onBootstrapToken } = this.#options;
    if (this.#pending !== undefined || (await store.read(hasOperator))) return;
    const text = token?.reveal() ?? randomBase62(43, random);
    this.#pending = { digest: sha256(text), expiresAt: clock.monotonic() + lifetimeMs };
    const isConfigured = token !== undefined;
    onBootstrapToken({ text, isConfigured });
  }

  isRight(text: string): boolean {
    const isSame = isSameText(sha256(text), this.#pending?.digest ?? sha256(""));
    const expiresAt = this.#pending?.expiresAt ?? -Infinity;
    return isSame && this.#options.clock.monotonic() < expiresAt;
  }

  end(): void {
    this.#pending = undefined;
  }
}

export async function hasOperator(view: ControlView): Promise<boolean> {
  const { items } = await view.users.list({ role: "operator" }, { limit: 1 });
  return items.length > 0;
}
