/** The part of the generated descriptors that the receiver uses. */
declare module "otlp-reference/build/src/generated/root.js" {
  interface MessageType {
    decode(bytes: Uint8Array): unknown;
    toObject(message: unknown, options: object): unknown;
  }
  const root: {
    readonly opentelemetry: {
      readonly proto: {
        readonly collector: {
          readonly trace: { readonly v1: { readonly ExportTraceServiceRequest: MessageType } };
          readonly metrics: { readonly v1: { readonly ExportMetricsServiceRequest: MessageType } };
        };
      };
    };
  };
  export default root;
}
