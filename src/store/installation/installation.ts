import type { DatabaseClaim, DatabaseFacts, DatabaseOwner } from "../store.ts";
import { randomBase62, type RandomBytes } from "../../domain/keys/base62.ts";
import type { Clock } from "../../domain/clock.ts";
import { Peppers } from "../../domain/keys/peppers.ts";
import type { Secret } from "../../domain/keys/secret.ts";
import { WrongDatabase } from "../errors.ts";
import { DataFolder, keepPepper, loadPepper, type Pepper } from "./data-folder.ts";

/** The settings of an installation. */
export interface InstallationSettings {
  readonly dataDir: string;
  /** The first digests, all verify. Empty: the pepper in the data directory. */
  readonly auth: { readonly peppers: readonly Secret[] };
  /** Advice differs: other gateways may use a server. */
  readonly storage: { readonly backend: "sqlite" | "postgres" };
}

/**
 * A data directory, a database and a pepper that belong together. The database stores the id of its
 * installation and the mark of its pepper, the directory the id. A database without an id is
 * adopted; one of another installation is refused before anything is written.
 */
export class Installation implements DatabaseOwner {
  readonly folder: DataFolder;
  readonly peppers: Peppers;
  readonly #random: RandomBytes;
  readonly #clock: Pick<Clock, "now">;
  /** Whether the data directory was used before this process. */
  readonly #wasUsed: boolean;
  readonly #isShared: boolean;
  readonly #older: readonly Secret[];
  #pepper: Pepper;
  #id: string | undefined;

  constructor(
    { dataDir, auth, storage }: InstallationSettings,
    { random, clock }: { readonly random: RandomBytes; readonly clock: Pick<Clock, "now"> },
  ) {
    this.folder = new DataFolder(dataDir);
    this.#isShared = storage.backend === "postgres";
    this.#random = random;
    this.#clock = clock;
    const [configured, ...older] = auth.peppers;
    this.#pepper = loadPepper({ configured, dataDir, random });
    this.#older = older;
    this.peppers = new Peppers(this.#pepper.secret, older);
    this.#wasUsed = this.folder.wasUsed;
    this.#id = this.folder.readId();
  }

  /** The peppers as texts, the first of which digests. */
  get secrets(): readonly Secret[] {
    return [this.#pepper.secret, ...this.#older];
  }

  check({ path, state, installation, pepperMark }: DatabaseFacts): void {
    if (state !== "filled" && this.#wasUsed) {
      throw new WrongDatabase(path, `is ${state}`, this.#adviceFor("a backup"));
    }
    if (installation !== undefined && this.#id !== undefined && installation !== this.#id) {
      const advice = this.#adviceFor("its own backup");
      throw new WrongDatabase(path, "belongs to another installation", advice);
    }
    if (pepperMark !== undefined && this.peppers.find(pepperMark) === undefined) {
      const { source, isNew } = this.#pepper;
      const gone = this.#isShared
        ? "a pepper that this gateway does not have"
        : "a pepper that is gone";
      const what = isNew ? gone : `another pepper than that of ${source}`;
      throw new WrongDatabase(path, `was used with ${what}`, this.#pepperAdvice());
    }
  }

  claim({ installation }: DatabaseFacts): DatabaseClaim {
    const id = this.#id ?? installation ?? `inst_${randomBase62(22, this.#random)}`;
    if (this.#pepper.isNew) {
      keepPepper(this.#pepper);
      this.#pepper = { ...this.#pepper, isNew: false };
    }
    this.folder.keepId(id);
    this.#id = id;
    return { installation: id, pepperMark: this.peppers.first.mark, at: this.#clock.now() };
  }

  #adviceFor(backup: string): string {
    return (
      `${this.folder.path} belongs to a database that was used before. Restore that from ${backup}, ` +
      `or correct storage.url or data_dir. To start over, use a new database and an empty data_dir.`
    );
  }

  #pepperAdvice(): string {
    const { source, isNew } = this.#pepper;
    const missing = isNew ? `${source} is missing, and auth.peppers is not set. ` : "";
    const restore = this.#isShared
      ? "Set auth.peppers to the list of the gateways that use this database, or restore the pepper from " +
        "a backup: without it no API key works. If one gateway was started with a new pepper in front, " +
        "all need that one, after the old one."
      : "Restore the pepper from a backup, or name it in auth.peppers: without it no API key works.";
    return `${missing}${restore} To give up all API keys instead, use a new database and an empty data_dir.`;
  }
}
