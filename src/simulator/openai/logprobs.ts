import { hashText } from "../answer/random.ts";

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
  readonly top_logprobs: readonly Omit<TokenLogprob, "top_logprobs">[];
}

const alternativeWords =
  " the, a, one, this, and, it, of, to, in, is, that, for, with, as, on, at, by, or".split(",");

/** `alternatives` is the number of likely tokens at each place. */
export function logprobsOf(
  tokens: readonly string[],
  alternatives: number,
  isRefusal: boolean,
): object {
  const list = tokens.map((token) => tokenLogprob(token, alternatives));
  return isRefusal ? { content: null, refusal: list } : { content: list, refusal: null };
}

/** Made-up log probabilities that look real: the token itself is the most likely. */
function tokenLogprob(token: string, alternatives: number): TokenLogprob {
  const logprob = -(hashText(token) % 1000) / 1500;
  const others = [".", ",", ...alternativeWords].filter((word) => word !== token);
  const named = [token, ...others].slice(0, alternatives);
  return {
    ...plain(token, logprob),
    top_logprobs: named.map((word, rank) => plain(word, logprob - rank * 1.375)),
  };
}

function plain(token: string, logprob: number): Omit<TokenLogprob, "top_logprobs"> {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
