import { createPublicKey, verify, type KeyObject } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../domain/clock.ts";

export interface ReportKeySettings {
  /** Where the scanner publishes its keys, as GitHub does; undefined: nowhere. */
  readonly publicKeysUrl: string | undefined;
  /** PEM, by the identifier of the key. */
  readonly publicKeys: Readonly<Record<string, string>>;
}

export interface Signed {
  readonly body: Uint8Array;
  readonly keyId: string;
  /** Base64 of an ASN.1 ECDSA signature. */
  readonly signature: string;
}

const publishedSchema = z.object({
  public_keys: z.array(z.object({ key_identifier: z.string(), key: z.string() })).max(100),
});

const fetchTimeoutMs = 5_000;
const publishedLimitBytes = 65_536;
/** Published keys are reloaded after this time, so that withdrawn ones end. */
const keptMs = 3_600_000;
/** Shortest time between two reloads for unknown identifiers, which anyone can send. */
const fetchPauseMs = 60_000;

/**
 * Checks signatures of reports: ECDSA on P-256 with SHA-256, by keys from the configuration or the
 * web.
 */
export class ReportKeys {
  readonly #settings: ReportKeySettings;
  readonly #clock: Pick<Clock, "monotonic">;
  #published: ReadonlyMap<string, string> = new Map();
  #readAt = -Infinity;
  #triedAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(settings: ReportKeySettings, clock: Pick<Clock, "monotonic">) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async isRight({ body, keyId, signature }: Signed): Promise<boolean> {
    const own = Object.entries(this.#settings.publicKeys).find(([id]) => id === keyId);
    const pem = own?.[1] ?? (await this.#findPublished(keyId));
    const key = pem === undefined ? undefined : readKey(pem);
    if (key === undefined) return false;
    return verify("sha256", body, key, Buffer.from(signature, "base64"));
  }

  async #findPublished(keyId: string): Promise<string | undefined> {
    const { publicKeysUrl: url } = this.#settings;
    if (url === undefined) return undefined;
    const now = this.#clock.monotonic();
    const isOld = now - this.#readAt >= keptMs;
    if (isOld) this.#published = new Map();
    if (!this.#published.has(keyId) && now - this.#triedAt >= fetchPauseMs) {
      this.#triedAt = now;
      this.#reading = this.#read(url).finally(() => {
        this.#reading = undefined;
      });
    }
    await this.#reading;
    return this.#published.get(keyId);
  }

  /** Keys that cannot be read are unknown: the report is refused and may be retried. */
  async #read(url: string): Promise<void> {
    try {
      const signal = AbortSignal.timeout(fetchTimeoutMs);
      const response = await fetch(url, { redirect: "error", signal });
      const text = await readText(response);
      const { public_keys: keys } = publishedSchema.parse(JSON.parse(text));
      this.#published = new Map(keys.map(({ key_identifier: id, key }) => [id, key]));
      this.#readAt = this.#clock.monotonic();
    } catch {
      // Keys loaded before remain valid for `keptMs`.
    }
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: ReadableStream<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > publishedLimitBytes) throw new Error("the list of keys is too long");
  }
  return Buffer.concat(chunks).toString("utf8");
}

function readKey(pem: string): KeyObject | undefined {
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : undefined;
  } catch {
    return undefined;
  }
}
