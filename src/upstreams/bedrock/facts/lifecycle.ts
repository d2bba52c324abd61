import { foundationModelOf } from "../models/model-families.ts";

/** When the provider ends a model, by its own pages. */
export interface EndOfLife {
  /** The foundation model's identifier. */
  readonly model: string;
  /** `YYYY-MM-DD`, UTC; the last one where regions differ. From then on requests fail. */
  readonly endsOn: string;
  readonly source: string;
  /** When the source was read, `YYYY-MM-DD`. */
  readonly asOf: string;
}

/** The end of the model that an identifier or an ARN names; most have none yet. */
export function endOfLifeOf(identifier: string): EndOfLife | undefined {
  const named = namedByArn.exec(identifier)?.[1] ?? identifier;
  const model = foundationModelOf(named);
  if (model === undefined) return undefined;
  // The size of its context window may follow: `...-v1:0:200k`.
  return endsOfLife.find((end) => model === end.model || model.startsWith(`${end.model}:`));
}

const namedByArn = /^arn:[^:]*:bedrock:[^:]*:[^:]*:(?:foundation-model|inference-profile)\/(.+)$/;

const lifecyclePage =
  "https://docs.aws.amazon.com/bedrock/latest/userguide/model-lifecycle-legacy.html";
const haikuCard =
  "https://docs.aws.amazon.com/bedrock/latest/userguide/model-card-anthropic-claude-3-5-haiku.html";

/** Models that have ended or will end. Ends that are only "no sooner than" are not here. */
export const endsOfLife: readonly EndOfLife[] = [
  // The page as of autumn 2026. It drops models a few months after their end.
  ...ends("2026-10-08", lifecyclePage, {
    "ai21.jamba-1-5-large-v1:0": "2026-11-26",
    "ai21.jamba-1-5-mini-v1:0": "2026-11-26",
    "anthropic.claude-sonnet-4-5-20250929-v1:0": "2027-04-08",
    "anthropic.claude-opus-4-1-20250805-v1:0": "2027-01-08",
    "anthropic.claude-sonnet-4-20250514-v1:0": "2026-10-14",
    "anthropic.claude-3-haiku-20240307-v1:0": "2026-09-10",
    "cohere.command-r-v1:0": "2026-08-19",
    "cohere.command-r-plus-v1:0": "2026-08-19",
  }),
  // The same page, then at `model-lifecycle.html`, as of spring 2026.
  ...ends("2026-05-26", lifecyclePage, {
    "amazon.nova-premier-v1:0": "2026-09-14",
    "anthropic.claude-3-sonnet-20240229-v1:0": "2026-07-30",
    "anthropic.claude-3-5-sonnet-20240620-v1:0": "2026-07-30",
    "anthropic.claude-3-5-sonnet-20241022-v2:0": "2026-07-30",
    // Outside GovCloud it was 2026-04-28.
    "anthropic.claude-3-7-sonnet-20250219-v1:0": "2026-07-30",
    "anthropic.claude-opus-4-20250514-v1:0": "2026-05-31",
    "meta.llama3-1-405b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-1b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-3b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-11b-instruct-v1:0": "2026-07-07",
    "meta.llama3-2-90b-instruct-v1:0": "2026-07-07",
  }),
  ...ends("2026-11-23", haikuCard, { "anthropic.claude-3-5-haiku-20241022-v1:0": "2026-06-19" }),
];

function ends(
  asOf: string,
  source: string,
  dates: Readonly<Record<string, string>>,
): readonly EndOfLife[] {
  return Object.entries(dates).map(([model, endsOn]) => ({ model, endsOn, source, asOf }));
}
