import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import { Peppers } from "../../domain/keys/peppers.ts";
import type { Secret } from "../../domain/keys/secret.ts";
import { WrongDatabase } from "../errors.ts";
import type { DatabaseClaim, DatabaseFacts, DatabaseOwner } from "../installation.ts";
import { DataFolder } from "./data-folder.ts";
import { keepPepper, loadPepper, type Pepper } from "./pepper.ts";

/** What the configuration says of it. */
export interface InstallationSettings {
  readonly dataDir: string;
  /** The first makes, all verify. None: the one that is kept in the data directory. */
  readonly auth: { readonly peppers: readonly Secret[] };
}

export interface InstallationServices {
  readonly random: RandomBytes;
  readonly clock: Pick<Clock, "now">;
}

/**
 * A data directory, a database and a pepper that belong together. The database knows its installation
 * and its pepper, the directory its installation. What knows neither is taken in, so a first start
 * asks nothing; what knows of another is refused before anything is written.
 */
export class Installation implements DatabaseOwner {
  readonly folder: DataFolder;
  readonly peppers: Peppers;
  readonly #random: RandomBytes;
  readonly #clock: Pick<Clock, "now">;
  /** Before this process left anything there. */
  readonly #wasUsed: boolean;
  #pepper: Pepper;
  #id: string | undefined;

  constructor({ dataDir, auth }: InstallationSettings, { random, clock }: InstallationServices) {
    this.folder = new DataFolder(dataDir);
    this.#random = random;
    this.#clock = clock;
    const [configured, ...older] = auth.peppers;
    this.#pepper = loadPepper({ configured, dataDir, random });
    this.peppers = new Peppers(this.#pepper.secret, older);
    this.#wasUsed = this.folder.wasUsed;
    this.#id = this.folder.readId();
  }

  get pepper(): Pepper {
    return this.#pepper;
  }

  check(facts: DatabaseFacts): void {
    if (this.isLost(facts)) {
      throw new WrongDatabase(facts.path, `is ${facts.state}`, this.#adviceFor("a backup"));
    }
    if (this.isForeign(facts)) {
      const advice = this.#adviceFor("its own backup");
      throw new WrongDatabase(facts.path, "belongs to another installation", advice);
    }
    if (this.hasWrongPepper(facts)) {
      const { source, isNew } = this.#pepper;
      const what = isNew ? "a pepper that is gone" : `another pepper than that of ${source}`;
      throw new WrongDatabase(facts.path, `was used with ${what}`, this.#pepperAdvice());
    }
  }

  /** Whether a database must be somewhere, and this is none. */
  isLost({ state }: DatabaseFacts): boolean {
    return state !== "filled" && this.#wasUsed;
  }

  isForeign({ installation }: DatabaseFacts): boolean {
    return installation !== undefined && this.#id !== undefined && installation !== this.#id;
  }

  /** Whether keys are, or may be, digested under a pepper that is none of these. */
  hasWrongPepper({ pepperMark, hasSecrets }: DatabaseFacts): boolean {
    if (pepperMark !== undefined) return this.peppers.find(pepperMark) === undefined;
    return hasSecrets && this.#pepper.isNew;
  }

  claim({ installation }: DatabaseFacts): DatabaseClaim {
    const id = this.#id ?? installation ?? `inst_${randomBase62(22, this.#random)}`;
    this.keepPepper();
    this.folder.keepId(id);
    this.#id = id;
    return { installation: id, pepperMark: this.peppers.first.mark, at: this.#clock.now() };
  }

  /** Writes a new pepper to its file; does nothing for one that has its place. */
  keepPepper(): void {
    if (!this.#pepper.isNew) return;
    keepPepper(this.#pepper);
    this.#pepper = { ...this.#pepper, isNew: false };
  }

  #adviceFor(backup: string): string {
    return (
      `${this.folder.path} belongs to a database that was used before. Restore that from ${backup}, ` +
      "or correct storage.url or data_dir. To begin anew, start once with `serve --init`."
    );
  }

  #pepperAdvice(): string {
    const { source, isNew } = this.#pepper;
    const missing = isNew ? `${source} is not there, and auth.peppers is not set. ` : "";
    return (
      `${missing}Restore the pepper from a backup, or name it in auth.peppers: without it no API key works. ` +
      "To give up all API keys instead, start once with `serve --init`."
    );
  }
}
