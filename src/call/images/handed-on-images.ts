import { anyOf, type EndSignal } from "../../domain/waiting/end-signal.ts";
import { type Conversation, fieldOf } from "../../domain/chat/conversation.ts";
import { abortable, whyEnded } from "../../domain/waiting/wait.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import {
  hostOf,
  ImageFailure,
  locateImage,
  parseImageUrl,
  type ResolveHost,
} from "./image-address.ts";
import { replaceAddresses } from "./inline-images.ts";
import { inParallel } from "../in-parallel.ts";

export interface AddressCheck {
  /** Addresses of the images in the request, at least one, and the field of each. */
  readonly params: ReadonlyMap<string, string>;
  readonly settings: ImageFetchSettings;
  readonly resolveHost: ResolveHost;
  /** Aborts when the answer is no longer needed. */
  readonly signal: EndSignal;
}

/** Limit on parallel lookups of one call. */
const lookupsAtOnce = 4;

/**
 * The request for an upstream that fetches images itself: every URL must be one the gateway would
 * fetch, and is sent in the checked form, because parsers differ on odd URLs. Throws
 * `GatewayError`.
 */
export async function withCheckedAddresses(
  request: Conversation,
  check: AddressCheck,
): Promise<Conversation> {
  const urls = new Map<string, URL>();
  const hosts = new Map<string, Host>();
  for (const [address, param] of check.params) {
    const url = parsed(address, param, check.settings);
    urls.set(address, url);
    if (!hosts.has(hostOf(url))) hosts.set(hostOf(url), { url, param });
  }
  if (hosts.size > check.settings.maxImages) {
    throw tooManyHosts(check.settings.maxImages, fieldOf(request, "turns"));
  }
  await checkHosts([...hosts.values()], check);
  const isAsSent = [...urls].every(([address, { href }]) => address === href);
  return isAsSent ? request : replaceAddresses(request, (address) => urls.get(address)?.href);
}

/** A host with images and the first field that names it. */
interface Host {
  readonly url: URL;
  readonly param: string;
}

function parsed(address: string, param: string, settings: ImageFetchSettings): URL {
  try {
    return parseImageUrl(address, settings);
  } catch (error) {
    throw error instanceof ImageFailure ? notForwarded(error, param) : error;
  }
}

async function checkHosts(
  hosts: readonly Host[],
  { settings, resolveHost, signal: callerSignal }: AddressCheck,
): Promise<void> {
  const timeout = AbortSignal.timeout(settings.timeoutMs);
  const signal = anyOf(callerSignal, timeout);
  const work = { count: hosts.length, limit: lookupsAtOnce, signal };
  await inParallel(work, async (index, ownSignal) => {
    const host = hosts[index];
    if (host === undefined) return;
    try {
      await abortable(locateImage(host.url, settings, resolveHost), ownSignal);
    } catch (error) {
      if (callerSignal.aborted) throw whyEnded(callerSignal);
      if (error instanceof ImageFailure) throw notForwarded(error, host.param);
      const late = new ImageFailure("its host could not be looked up in time", { cause: error });
      throw notForwarded(late, host.param);
    }
  });
}

function tooManyHosts(mostHosts: number, param: string): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `The images of one request may be at ${mostHosts} hosts at most. ` +
      "Send the others as data URLs.",
    param,
  });
}

function notForwarded(failure: ImageFailure, param: string): GatewayError {
  return new GatewayError("invalid_image_url", {
    message:
      `The model must not fetch the URL of the image: ${failure.message}. ` +
      "Use a public URL, or send the image as a data URL.",
    param,
    cause: failure,
  });
}
