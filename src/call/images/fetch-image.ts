import { isIP } from "node:net";
import { anyOf, type EndSignal } from "../../domain/waiting/end-signal.ts";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import { abortable, whyEnded } from "../../domain/waiting/wait.ts";
import {
  hostOf,
  ImageFailure,
  type ImageSource,
  locateImage,
  parseImageUrl,
  type ResolveHost,
} from "./image-address.ts";

export interface ImageFetch {
  readonly settings: ImageFetchSettings;
  readonly resolveHost: ResolveHost;
  /** Aborts when the image is no longer needed. */
  readonly signal: EndSignal;
  /** Called for every chunk; may throw `ImageFailure` to stop. */
  readonly onBytes: (count: number) => void;
}

/** Each redirect is checked like the first URL. */
const mostRedirects = 2;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Fetches an image by URL and returns it as a data URL. Connects only to checked addresses and
 * sends nothing of the caller or the gateway. Throws `ImageFailure`, or `GatewayError`
 * `caller_left`.
 */
export async function fetchImage(address: string, fetching: ImageFetch): Promise<string> {
  const { settings } = fetching;
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), settings.timeoutMs);
  const signal = anyOf(fetching.signal, end.signal);
  try {
    const response = await follow(address, { ...fetching, signal });
    return toDataUrl(await readBody(response, fetching));
  } catch (error) {
    if (fetching.signal.aborted) throw whyEnded(fetching.signal);
    if (error instanceof ImageFailure) throw error;
    const reason = end.signal.aborted ? "it took too long" : "it could not be downloaded";
    throw new ImageFailure(reason, { cause: error });
  } finally {
    clearTimeout(timer);
    // Closes the connection if the body was not read.
    end.abort();
  }
}

/** `fetch` takes only a signal of the runtime. */
type AbortableFetch = ImageFetch & { readonly signal: AbortSignal };

async function follow(address: string, fetching: AbortableFetch): Promise<Response> {
  const { settings, resolveHost, signal } = fetching;
  let url = parseImageUrl(address, settings);
  for (let redirects = 0; ; redirects += 1) {
    const source = await abortable(locateImage(url, settings, resolveHost), signal);
    const response = await connect(source, signal);
    const location = response.headers.get("location");
    if (location === null || !redirectStatuses.has(response.status)) return checked(response);
    if (redirects === mostRedirects) throw new ImageFailure("its address redirects too often");
    await response.body?.cancel();
    url = parseImageUrl(location, settings, url);
  }
}

/** Tries the addresses of the host in order. */
async function connect(source: ImageSource, signal: AbortSignal): Promise<Response> {
  let failure: unknown;
  for (const address of source.addresses) {
    try {
      return await request(source.url, address, signal);
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
  }
  throw new ImageFailure("it could not be downloaded", { cause: failure });
}

/** Puts the address instead of the name, so that no second lookup decides the destination. */
function request(url: URL, address: string, signal: AbortSignal): Promise<Response> {
  const pinned = new URL(url);
  pinned.hostname = address.includes(":") ? `[${address}]` : address;
  const name = hostOf(url);
  return fetch(pinned, {
    headers: {
      host: url.host,
      accept: "image/png, image/jpeg, image/gif, image/webp",
      "accept-encoding": "identity",
      "user-agent": "sluice",
    },
    ...(isIP(name) === 0 && { tls: { serverName: name.replace(/\.$/, "") } }),
    proxy: false,
    redirect: "manual",
    keepalive: false,
    decompress: false,
    timeout: false,
    signal,
  });
}

function checked(response: Response): Response {
  if (response.status === 200) return response;
  throw new ImageFailure(`its host answered with status ${response.status}`);
}

async function readBody(
  response: Response,
  { settings: { maxBytes: limitBytes }, onBytes }: ImageFetch,
): Promise<Uint8Array> {
  const tooLarge = new ImageFailure(`it is larger than ${limitBytes} bytes`);
  if (Number(response.headers.get("content-length") ?? 0) > limitBytes) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let size = 0;
  const body: AsyncIterable<Uint8Array> | null = response.body;
  if (body === null) return new Uint8Array();
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limitBytes) throw tooLarge;
    onBytes(chunk.byteLength);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function toDataUrl(bytes: Uint8Array): string {
  const type = imageTypeOf(bytes);
  if (type === undefined) {
    throw new ImageFailure("it is not an image in PNG, JPEG, GIF or WebP format");
  }
  return `data:${type};base64,${bytes.toBase64()}`;
}

/** The image formats that every vision model accepts. */
type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** Detects the format by the first bytes, since headers and file names are unreliable. */
export function imageTypeOf(bytes: Uint8Array): ImageType | undefined {
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (has(bytes, 0, "\xff\xd8\xff")) return "image/jpeg";
  if (has(bytes, 0, "GIF87a") || has(bytes, 0, "GIF89a")) return "image/gif";
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return "image/webp";
  return undefined;
}

/** Whether `signature`, one byte per character, is at `offset`. */
function has(bytes: Uint8Array, offset: number, signature: string): boolean {
  const found = bytes.subarray(offset, offset + signature.length);
  return Buffer.from(signature, "latin1").equals(found);
}
