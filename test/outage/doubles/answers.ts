import { chatBody, streamFrames } from "../../../bench/upstream/bodies.ts";
import { converseBody, converseFrames } from "../../../bench/upstream/converse-bodies.ts";
import { vectorLength } from "../load/load-plan.ts";

/** Bytes of an answer, and when they are due after the request. */
export interface Piece {
  readonly afterMs: number;
  readonly bytes: Buffer;
}

/** An answer in two parts; a stalled one ends after the first. */
export interface Answer {
  readonly first: readonly Piece[];
  readonly rest: readonly Piece[];
}

export const answerMs = 20;
const pieceMs = 5;
/** For a long stream. */
const longPieces = 20;
const longPieceMs = 100;

const model = "double";

/** Successful answers of one wire, made once. */
interface WireAnswers {
  readonly whole: Answer;
  readonly stream: Answer;
  readonly longStream: Answer;
  readonly embeddings: Answer;
}

const vector = Array.from({ length: vectorLength }, (_, index) => Math.sin(index + 1));
const openaiEmbeddings = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: vector }],
  model,
  usage: { prompt_tokens: 4, total_tokens: 4 },
};
const titanEmbedding = { embedding: vector, inputTextTokenCount: 4 };

const openai: WireAnswers = {
  whole: wholeAnswer(chatBody(model)),
  ...streams("text/event-stream", streamFrames(model)),
  embeddings: wholeAnswer(JSON.stringify(openaiEmbeddings)),
};
const bedrock: WireAnswers = {
  whole: wholeAnswer(converseBody()),
  ...streams("application/vnd.amazon.eventstream", converseFrames()),
  embeddings: wholeAnswer(JSON.stringify(titanEmbedding)),
};

export interface WantedAnswer {
  readonly path: string;
  readonly body: Buffer;
  readonly isLong: boolean;
}

/** The path determines the wire and the kind of call; OpenAI's body, whether it is streamed. */
export function answerTo({ path, body, isLong }: WantedAnswer): Answer {
  const streamOf = ({ stream, longStream }: WireAnswers): Answer => (isLong ? longStream : stream);
  if (path.endsWith("/embeddings")) return openai.embeddings;
  if (path.endsWith("/invoke")) return bedrock.embeddings;
  if (path.endsWith("/converse-stream")) return streamOf(bedrock);
  if (path.endsWith("/converse")) return bedrock.whole;
  return body.includes('"stream":true') ? streamOf(openai) : openai.whole;
}

export interface Refusal {
  readonly status: 429 | 500 | 503;
  readonly retryAfterSeconds?: number;
}

const bedrockExceptions = {
  429: "ThrottlingException",
  500: "InternalServerException",
  503: "ServiceUnavailableException",
} as const;

/** A refusal in the format of the path's wire. */
export function refusalTo(path: string, { status, retryAfterSeconds }: Refusal): Buffer {
  const message = `the double refuses with ${status}`;
  const isBedrock = path.startsWith("/model/");
  const body = isBedrock
    ? { message }
    : { error: { message, type: "server_error", param: null, code: null } };
  const headers = [
    ...(isBedrock ? [`x-amzn-errortype: ${bedrockExceptions[status]}`] : []),
    ...(retryAfterSeconds === undefined ? [] : [`retry-after: ${retryAfterSeconds}`]),
  ];
  return response(`${status} Refused`, JSON.stringify(body), headers);
}

function wholeAnswer(body: string): Answer {
  const bytes = response("200 OK", body, []);
  const middle = bytes.length - Math.floor(Buffer.byteLength(body) / 2);
  return {
    first: [{ afterMs: answerMs, bytes: bytes.subarray(0, middle) }],
    rest: [{ afterMs: answerMs, bytes: bytes.subarray(middle) }],
  };
}

function response(status: string, body: string, headers: readonly string[]): Buffer {
  const lines = [
    `HTTP/1.1 ${status}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

interface Frames {
  readonly first: Buffer;
  readonly text: Buffer;
  readonly last: Buffer;
}

function streams(contentType: string, frames: Frames): Pick<WireAnswers, "stream" | "longStream"> {
  const head = Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  const streamOf = (pieces: number, gapMs: number): Answer => {
    const dueMs = (index: number): number => answerMs + (index + 1) * gapMs;
    const texts = Array.from({ length: pieces }, (_, index) => {
      return { afterMs: dueMs(index), bytes: chunk(frames.text) };
    });
    const begin = Buffer.concat([head, chunk(frames.first)]);
    const end = Buffer.concat([chunk(frames.last), Buffer.from("0\r\n\r\n")]);
    return {
      first: [{ afterMs: answerMs, bytes: begin }, ...texts.slice(0, 1)],
      rest: [...texts.slice(1), { afterMs: dueMs(pieces), bytes: end }],
    };
  };
  return { stream: streamOf(2, pieceMs), longStream: streamOf(longPieces, longPieceMs) };
}

function chunk(frame: Buffer): Buffer {
  const length = Buffer.from(`${frame.length.toString(16)}\r\n`);
  return Buffer.concat([length, frame, Buffer.from("\r\n")]);
}
