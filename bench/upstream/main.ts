/**
 * The static upstream: a separate program, so that its CPU time is separate. Prints its port, and
 * ends when its standard input does.
 */
import { benchModels, embeddingsShape } from "../models.ts";
import { chatBody, embeddingsBody, streamFrames, toolCall, type StreamFrames } from "./bodies.ts";
import { UpstreamConnection, type PreparedAnswers, type PreparedStream } from "./connection.ts";
import { converseBody, converseFrames } from "./converse-bodies.ts";

const server = listen(prepareAnswers());
console.log(server.port);
for await (const _ of Bun.stdin.stream()) continue;
server.stop(true);

function prepareAnswers(): PreparedAnswers {
  return {
    chat: wholeResponse(chatBody(benchModels.chat)),
    toolCall: wholeResponse(chatBody(benchModels.chat, { content: null, tool_calls: [toolCall] })),
    chatStream: prepareStream("text/event-stream", streamFrames(benchModels.chat)),
    converse: wholeResponse(converseBody()),
    converseStream: prepareStream("application/vnd.amazon.eventstream", converseFrames()),
    embeddings: wholeResponse(embeddingsBody(embeddingsShape)),
  };
}

function prepareStream(contentType: string, { first, text, last }: StreamFrames): PreparedStream {
  const head =
    `HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\n` + "transfer-encoding: chunked\r\n\r\n";
  return {
    first: Buffer.concat([Buffer.from(head), chunk(first)]),
    text: chunk(text),
    last: Buffer.concat([chunk(last), Buffer.from("0\r\n\r\n")]),
  };
}

function chunk(frame: Buffer): Buffer {
  const length = Buffer.from(`${frame.length.toString(16)}\r\n`);
  return Buffer.concat([length, frame, Buffer.from("\r\n")]);
}

function wholeResponse(body: string): Buffer {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  return Buffer.from(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function listen(answers: PreparedAnswers): Bun.TCPSocketListener<UpstreamConnection> {
  return Bun.listen<UpstreamConnection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.setNoDelay(true);
        socket.data = new UpstreamConnection(answers, socket);
      },
      data: (socket, bytes) => socket.data.receive(bytes),
      drain: (socket) => socket.data.drained(),
      close: (socket) => socket.data.closed(),
      error: (socket) => socket.data.closed(),
    },
  });
}
