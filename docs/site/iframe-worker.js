// Lets the search run on pages opened from a disk, where browsers refuse workers: a worker's script
// runs in a hidden frame, which exchanges messages with the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.body.appendChild(document.createElement("iframe"));
      this.frame.hidden = true;
      const inside = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source === inside) {
          const message = new MessageEvent("message", { data: event.data });
          this.dispatchEvent(message);
          this.onmessage?.(message);
        }
      });
      const page = inside.document;
      page.open();
      page.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(
          (resolve) => {
            const script = document.createElement("script");
            script.onload = resolve;
            script.src = url;
            document.body.append(script);
          })), Promise.resolve());
        </script><script src="${url}"></script></body>`);
      page.close();
      this.loaded = new Promise((resolve) => (inside.onload = resolve)); // open() removes listeners
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.loaded.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
