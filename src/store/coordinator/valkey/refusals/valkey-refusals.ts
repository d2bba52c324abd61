import {
  isRefusal,
  type Refusal,
  refusalBounds,
  type RefusalFilter,
  subjectOf,
} from "../../../../domain/errors/refusal.ts";
import type { RefusalStore } from "../../../refusal-store.ts";
import { listOf } from "../connection/list-of.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { keepScript } from "./keep-script.ts";

type Group = keyof typeof refusalBounds;

/** After the newest one. */
const keptMs = 24 * 3_600_000;
/** Texts that one command reads. */
const batch = 200;
/** All are under one hash tag. Its number changes with the form of the texts. */
const start = "sluice:{refusals:1}";

/** The last refusals of all gateways, in a server that they share. */
export class ValkeyRefusals implements RefusalStore {
  readonly #connection: ValkeyConnection;

  constructor(connection: ValkeyConnection) {
    this.#connection = connection;
  }

  async keep(refusal: Refusal): Promise<void> {
    const { of, subject } = subjectOf(refusal);
    const { perSubject, limit } = refusalBounds[of];
    const { id, at } = refusal;
    await this.#connection.run(
      keepScript,
      [textsKey(of), `${start}:${of}:owners`, timesKey(of), subjectKey(of, subject)],
      [id, ...[at, JSON.stringify(refusal), perSubject, limit, keptMs].map(String)],
    );
  }

  async find(id: string): Promise<Refusal | undefined> {
    const ofKeys = await this.#read("keys", [id]);
    return (ofKeys.length > 0 ? ofKeys : await this.#read("strangers", [id]))[0];
  }

  async list({ keyId, accountId }: RefusalFilter, limit: number): Promise<readonly Refusal[]> {
    const isAsked = ({ explanation }: Refusal): boolean =>
      accountId === undefined || explanation.accountId === accountId;
    const lists =
      keyId === undefined
        ? [
            this.#newest("keys", timesKey("keys"), { isAsked, limit }),
            this.#newest("strangers", timesKey("strangers"), { isAsked, limit }),
          ]
        : [this.#newest("keys", subjectKey("keys", keyId), { isAsked, limit })];
    const found = (await Promise.all(lists)).flat();
    return found.toSorted((one, other) => other.at - one.at).slice(0, limit);
  }

  close(): void {
    this.#connection.close();
  }

  async #newest(of: Group, key: string, { isAsked, limit }: Wanted): Promise<readonly Refusal[]> {
    const range = [key, "0", "-1", "REV"];
    const ids = listOf(await this.#connection.send(key, "ZRANGE", range)).map(String);
    const found: Refusal[] = [];
    for (let at = 0; at < ids.length && found.length < limit; at += batch) {
      found.push(...(await this.#read(of, ids.slice(at, at + batch))).filter(isAsked));
    }
    return found;
  }

  async #read(of: Group, ids: readonly string[]): Promise<readonly Refusal[]> {
    const key = textsKey(of);
    const texts = listOf(await this.#connection.send(key, "HMGET", [key, ...ids]));
    return texts.flatMap((text) => {
      const refusal = typeof text === "string" ? parsed(text) : undefined;
      return isRefusal(refusal) ? [refusal] : [];
    });
  }
}

interface Wanted {
  readonly isAsked: (refusal: Refusal) => boolean;
  readonly limit: number;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textsKey(of: Group): string {
  return `${start}:${of}:texts`;
}

function timesKey(of: Group): string {
  return `${start}:${of}:times`;
}

function subjectKey(of: Group, subject: string): string {
  return `${start}:${of}:of:${subject}`;
}
