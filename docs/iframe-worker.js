// The search of the site runs in a Worker, which browsers refuse to pages that were opened from the disk. For those,
// this Worker runs its script in a hidden frame; where pages are served, it leaves the browser's own alone.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      // Browsers that load an empty frame later would drop what was put into it before.
      inside.document.open();
      inside.document.write("<body></body>");
      inside.document.close();
      const loaded = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script");
          script.onload = resolve;
          script.onerror = () => reject(new Error(source));
          script.src = new URL(source, location.href);
          inside.document.body.append(script);
        });
      // What the script posts is for this page, and the languages that it imports are scripts like itself.
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => loaded(source)), Promise.resolve());
      this.ready = loaded(url);
      this.inside = inside;
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
    set onmessage(listener) {
      this.addEventListener("message", listener);
    }
    set onerror(listener) {
      this.addEventListener("error", listener);
    }
  };
  window.Worker = window.IFrameWorker;
}
