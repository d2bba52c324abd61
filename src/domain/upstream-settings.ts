/** How long one attempt may take. */
export interface Timeouts {
  readonly connectMs: number;
  /** From sending to the first event of the answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the answer. */
  readonly idleMs: number;
  readonly totalMs: number;
}

/**
 * Reading on after the caller has left, for the count of an upstream that bills the whole answer
 * anyway.
 */
export interface DrainSettings {
  readonly timeoutMs: number;
  /** Most answers of the upstream that are read on at once; more are aborted. */
  readonly limit: number;
}

/** How images are read by address, for upstreams that take only the images themselves. */
export interface ImageFetchSettings {
  readonly enabled: boolean;
  /** Largest image. */
  readonly maxBytes: number;
  /** For one image, redirects included. */
  readonly timeoutMs: number;
  /** Of one request. */
  readonly maxImages: number;
  /** Lower case, without port: images may come from any of their ports. None is any host. */
  readonly allowedHosts: readonly string[];
  /** Metadata services of clouds stay out of reach all the same. */
  readonly allowsPrivateAddresses: boolean;
}
