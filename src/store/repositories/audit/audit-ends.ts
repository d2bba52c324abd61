import type { AuditLink } from "../../../domain/audit/audit-checkpoint.ts";
import { firstDigest } from "../../../domain/audit/audit-digest.ts";
import type { AuditSeals } from "../../../domain/audit/audit-seals.ts";
import type { AuditEnd, AuditRemoval } from "../../control-store.ts";
import type { AuditAnchorRow, AuditHeadRow, Queries } from "../tables.ts";

/** The end of the chain. */
export interface AuditHead extends AuditLink {
  /** The last entry of a version without seals; 0: there is none. */
  readonly plainUntil: number;
}

/** The start of the chain: the last entry that retention removed. */
export interface AuditAnchor extends AuditLink {
  /** Undefined when a version without seals removed it. */
  readonly removal: AuditRemoval | undefined;
}

/** Undefined: there is none, or this installation did not seal it. */
export interface Ends {
  readonly anchor: AuditAnchor | undefined;
  readonly head: AuditHead | undefined;
}

const noAnchor: AuditAnchor = { sequence: 0, digest: firstDigest, removal: undefined };

/** Both ends of the chain, in one transaction. */
export class AuditEnds {
  readonly #queries: Queries;
  readonly #seals: AuditSeals;

  constructor(queries: Queries, seals: AuditSeals) {
    this.#queries = queries;
    this.#seals = seals;
  }

  async read(): Promise<Ends> {
    return { anchor: await this.readAnchor(), head: await this.readHead() };
  }

  async readHead(): Promise<AuditHead | undefined> {
    const row = await this.#headRow();
    if (row === undefined) return undefined;
    const head = toHead(row);
    return this.#seals.isRight("head", headValues(head), row) ? head : undefined;
  }

  async writeHead(head: AuditHead): Promise<void> {
    const { sequence, digest, plainUntil } = head;
    const row = { sequence, digest, plainUntil, ...this.#seals.make("head", headValues(head)) };
    await this.#queries
      .insertInto("auditHead")
      .values({ place: 1, ...row })
      .onConflict((conflict) => conflict.column("place").doUpdateSet(row))
      .execute();
  }

  /**
   * The stored start of the chain. Until retention removes anything, it is before the first entry.
   */
  async readAnchor(): Promise<AuditAnchor | undefined> {
    const row = await this.#anchorRow();
    if (row === undefined) return noAnchor;
    const anchor = toAnchor(row);
    const sealed = { pepper: row.pepper ?? "", seal: row.seal ?? "" };
    return this.#seals.isRight("anchor", anchorValues(anchor), sealed) ? anchor : undefined;
  }

  async writeAnchor(anchor: AuditAnchor): Promise<void> {
    const { sequence, digest, removal } = anchor;
    const { at = null, removedAt = null, keptMs = null } = removal ?? {};
    const sealed = this.#seals.make("anchor", anchorValues(anchor));
    await this.#queries.deleteFrom("auditAnchor").execute();
    await this.#queries
      .insertInto("auditAnchor")
      .values({ sequence, digest, at, removedAt, keptMs, ...sealed })
      .execute();
  }

  /** The last stored entry, independent of the head. */
  async lastLink(): Promise<AuditLink> {
    const row = await this.#queries
      .selectFrom("audit")
      .select(["sequence", "digest"])
      .orderBy("sequence", "desc")
      .limit(1)
      .executeTakeFirst();
    return row ?? (await this.#anchorRow()) ?? noAnchor;
  }

  /**
   * Seals the stored chain as it is. Only for a database from before seals, and when an operator
   * gives up the previous pepper; at any other time it would hide tampering.
   */
  async sealAll(): Promise<void> {
    const { sequence, digest } = await this.lastLink();
    const row = await this.#anchorRow();
    if (row !== undefined) await this.writeAnchor(toAnchor(row));
    const plain = await this.#queries
      .selectFrom("audit")
      .select((eb) => eb.fn.max("sequence").as("until"))
      .where("seal", "is", null)
      .executeTakeFirst();
    await this.writeHead({ sequence, digest, plainUntil: plain?.until ?? 0 });
  }

  /** Checks only both ends; a change between them is found when the whole chain is verified. */
  async find(known?: AuditLink): Promise<AuditEnd> {
    const head = await this.readHead();
    const { sequence, digest } = await this.lastLink();
    const isRight = head?.sequence === sequence && head.digest === digest;
    const end = isRight ? { sequence, digest } : undefined;
    return { end, hasKnown: known === undefined || (await this.#hasLink(known)) };
  }

  /**
   * Renews valid seals of older peppers under the first one, so that no seal needs the older ones.
   */
  async renewSeals(): Promise<void> {
    const { anchor, head } = await this.read();
    const ofHead = await this.#headRow();
    if (head !== undefined && !this.#seals.isFirst(ofHead?.pepper ?? "")) {
      await this.writeHead(head);
    }
    const row = await this.#anchorRow();
    if (row === undefined || anchor === undefined || this.#seals.isFirst(row.pepper ?? "")) return;
    await this.writeAnchor(anchor);
  }

  /** Whether the chain has the entry, or had it until retention removed it. */
  async #hasLink(known: AuditLink): Promise<boolean> {
    const anchor = await this.readAnchor();
    if (anchor === undefined || known.sequence < anchor.sequence) return anchor !== undefined;
    if (known.sequence === anchor.sequence) return known.digest === anchor.digest;
    const query = this.#queries.selectFrom("audit").select("digest");
    const row = await query.where("sequence", "=", known.sequence).executeTakeFirst();
    return row?.digest === known.digest;
  }

  #headRow(): Promise<AuditHeadRow | undefined> {
    return this.#queries.selectFrom("auditHead").selectAll().executeTakeFirst();
  }

  #anchorRow(): Promise<AuditAnchorRow | undefined> {
    const query = this.#queries.selectFrom("auditAnchor").selectAll();
    return query.orderBy("sequence", "desc").limit(1).executeTakeFirst();
  }
}

function toHead({ sequence, digest, plainUntil }: AuditHeadRow): AuditHead {
  return { sequence, digest, plainUntil };
}

function toAnchor({ sequence, digest, at, removedAt, keptMs }: AuditAnchorRow): AuditAnchor {
  const isKnown = at !== null && removedAt !== null && keptMs !== null;
  return { sequence, digest, removal: isKnown ? { at, removedAt, keptMs } : undefined };
}

function headValues({ sequence, digest, plainUntil }: AuditHead): readonly (string | number)[] {
  return [sequence, digest, plainUntil];
}

function anchorValues({ sequence, digest, removal }: AuditAnchor): readonly (string | number)[] {
  const times = removal === undefined ? [] : [removal.at, removal.removedAt, removal.keptMs];
  return [sequence, digest, ...times];
}
