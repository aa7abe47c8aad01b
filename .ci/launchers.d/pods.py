"""The Job that `dosmos up --print kubernetes` writes, without Kubernetes: each of its pods is a network namespace that gets the command, the
variables, the volumes and the names that Kubernetes would give it. What a scheduler, an image and a storage class do is not tried."""

import os
import sys

from lab import DOSMOS, Failed, Net, check

PODS = 3


def resources(text):
    """The resources of a manifest, by kind."""
    import yaml  # of kubernetes-validate
    return {resource["kind"]: resource for resource in yaml.safe_load_all(text)}


def lacks():
    """What is missing to read a manifest."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        return f"PyYAML for {sys.executable}, which kubernetes-validate brings"
    return None


def run(lab, manifest, secrets):
    """Runs the pods of the Job until they have ended; `secrets` are files, by the name of the secret and the key. The folder of the runs."""
    kinds = resources(manifest)
    job, service, config = kinds["Job"], kinds["Service"]["metadata"]["name"], kinds["ConfigMap"]
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]
    names = [f"{job['metadata']['name']}-{index}" for index in range(job["spec"]["completions"])]
    check("the names that pods of a Job have are found in its service", pod["subdomain"], service)
    net = Net(lab, names)
    for name in names:
        # The service's name server knows the pods so.
        known = "".join(f"{net.address[n]} {n} {n}.{service}\n" for n in names)
        with open(f"/etc/netns/{net.ns(name)}/hosts", "w") as hosts:
            hosts.write(f"127.0.0.1 localhost\n{known}")
    folders = {mount["mountPath"]: lab.dir / f"volume.{mount['name']}" for mount in container["volumeMounts"]}
    for volume in pod["volumes"]:
        folder = lab.dir / f"volume.{volume['name']}"
        folder.mkdir()
        for source in volume.get("projected", {}).get("sources", []):
            if "configMap" in source:
                check("the map of the volume", source["configMap"]["name"], config["metadata"]["name"])
                files = config["data"]
            else:
                secret = source["secret"]
                files = {item["path"]: secrets[secret["name"]][item["key"]] for item in secret["items"]}
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
                (folder / path).chmod(volume["projected"]["defaultMode"])

    def here(path):
        """The path outside the pod."""
        for mounted, folder in folders.items():
            if path == mounted or path.startswith(mounted + "/"):
                return str(folder) + path[len(mounted):]
        return path

    def value(variable):
        if "value" in variable:
            return str(variable["value"])
        if "secretKeyRef" in variable["valueFrom"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            return secrets[reference["name"]][reference["key"]]
        check("a label that the controller sets", variable["valueFrom"]["fieldRef"]["fieldPath"],
              "metadata.labels['batch.kubernetes.io/controller-uid']")
        return "a-job"
    shared = {variable["name"]: value(variable) for variable in container["env"]}
    command = [here(word) for word in container["command"] + container.get("args", [])]
    pods = []
    for index, name in enumerate(names):
        env = {**shared, "JOB_COMPLETION_INDEX": str(index), "PATH": f"{DOSMOS.parent}:{os.environ['PATH']}"}
        inside = ["env", "--chdir", here(container["workingDir"]), *command]
        pods.append(lab.start([*net.at(name), *inside], f"{name}.log", env=env))
    for name, started in zip(names, pods):
        if started.wait(120):
            raise Failed(f"{name}: {started.returncode}\n{lab.said(f'{name}.log')}")
    lab.services.clear()
    return folders[container["workingDir"]], names
