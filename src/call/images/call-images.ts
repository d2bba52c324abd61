import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { retryHeaders } from "../../domain/limits/headers.ts";
import type { Attempt } from "../attempts/attempt.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import { withCheckedAddresses } from "./handed-on-images.ts";
import { ImageFailure } from "./image-address.ts";
import type { MemoryHold } from "../../domain/waiting/memory-gate.ts";
import { checkAllowed, findAddresses, readImages, replaceAddresses } from "./inline-images.ts";
import { whyEnded } from "../../domain/waiting/wait.ts";

/** Limit on image bytes of all calls together; their requests take several times more. */
export const imageMemoryBytes = 128 * 1024 * 1024;

/** Limit on calls that wait for it. */
const mostWaiting = 1_000;

/** The images of one call may total so many times the limit of one. */
const largestImagesPerCall = 4;

/** The first bytes of an image, which is all that adapters look at. */
const placeholderImage = "data:image/png;base64,iVBORw0KGgo=";

/**
 * Images that a call references by URL. Each is checked or fetched once for all targets. Fetched
 * images count against the image memory until this is disposed of, once the call has an answer.
 */
export class CallImages implements Disposable {
  readonly #request: Conversation;
  /** Addresses of images, and the field of each. */
  #params: ReadonlyMap<string, string> | undefined;
  #checked: Promise<Conversation> | undefined;
  #inlined: Promise<Conversation> | undefined;
  #memory: MemoryHold | undefined;

  constructor(request: Conversation) {
    this.#request = request;
  }

  /**
   * The request in the form the target accepts. Images are fetched only once the target is known to
   * accept the request. Throws like `encode`, `readImages` and `withCheckedAddresses`.
   */
  requestFor(codec: ChatCodec, attempt: Attempt): Conversation | Promise<Conversation> {
    const request = this.#request;
    const { candidate } = attempt;
    const params = (this.#params ??= findAddresses(request));
    if (params.size === 0) return request;
    if (codec.takesImageUrls) return (this.#checked ??= this.#check(params, attempt));
    if (this.#inlined === undefined) {
      codec.encode(
        replaceAddresses(request, () => placeholderImage),
        candidate.target.model,
      );
      this.#inlined = this.#inline(params, attempt);
    }
    return this.#inlined;
  }

  [Symbol.dispose](): void {
    this.#memory?.release();
  }

  #check(
    params: ReadonlyMap<string, string>,
    { call, signal, services }: Attempt,
  ): Promise<Conversation> {
    const { snapshot } = call;
    const { imageFetch: settings } = snapshot.settings;
    const { resolveHost } = services;
    const check = { params, settings, resolveHost, signal };
    return withCheckedAddresses(this.#request, check);
  }

  async #inline(
    params: ReadonlyMap<string, string>,
    { call, signal, services }: Attempt,
  ): Promise<Conversation> {
    const { snapshot } = call;
    const { imageFetch: settings } = snapshot.settings;
    checkAllowed(params, settings, fieldOf(this.#request, "turns"));
    const limitBytes = settings.maxBytes * Math.min(params.size, largestImagesPerCall);
    const { imageMemory, imageMemoryBytes: allBytes } = services;
    const ownBytes = allBytes / 2;
    const { id: name, accountId: account } = call.caller.key;
    const memory = imageMemory.hold(
      { name, account, request: { signal }, full: memoryFull },
      { allBytes, ownBytes, waitMs: settings.timeoutMs, queue: mostWaiting },
    );
    this.#memory = memory;
    try {
      await memory.reserve(Math.min(limitBytes, ownBytes));
    } catch (error) {
      throw signal.aborted ? whyEnded(signal) : error;
    }
    let bytes = 0;
    const onBytes = (count: number): void => {
      bytes += count;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
    };
    const { resolveHost } = services;
    const dataUrls = await readImages(params, { settings, resolveHost, signal, onBytes });
    memory.becomes(bytes);
    return replaceAddresses(this.#request, (address) => dataUrls.get(address));
  }
}

function tooLarge(limitBytes: number): ImageFailure {
  return new ImageFailure(`the images of this request exceed ${limitBytes} bytes in total`);
}

function memoryFull(): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The gateway is reading too many images at the moment. Please retry with exponential backoff.",
    headers: retryHeaders(2_000),
    explanation: {
      rule: "image_memory_full",
      summary: "The image memory of all calls stayed full for image_fetch.timeout.",
    },
  });
}
