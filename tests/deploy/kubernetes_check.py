#!/usr/bin/env python3
"""Whether what kustomize rendered fits together, and its kinds' schemas.

  kubernetes_check.py FILE...                    names, numbers and labels refer to what is there
  kubernetes_check.py --schema VERSION FILE...   the schemas of Kubernetes too: needs kubernetes-validate of PyPI
  kubernetes_check.py --crd CRD FILE...          each object of the CRD's kind by its schema: needs jsonschema
"""
import argparse
import pathlib
import sys

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML has it
faults = []


def require(holds, text):
    if not holds:
        faults.append(text)


def of_kind(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def names(objects, kind):
    return {each["metadata"]["name"] for each in of_kind(objects, kind)}


def pod_specs(objects):
    """(what, the template) of all pods."""
    for job in of_kind(objects, "Job"):
        yield "Job", job["spec"]["template"]
    for job in of_kind(objects, "MPIJob"):
        for role, replica in job["spec"]["mpiReplicaSpecs"].items():
            yield f"MPIJob {role}", replica["template"]


def check_pod(what, template, objects):
    spec = template["spec"]
    mounts = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
    volumes = {volume["name"] for volume in spec["volumes"]}
    require(mounts == volumes, f"{what}: volumes {sorted(volumes)} and mounts {sorted(mounts)} differ")
    for volume in spec["volumes"]:
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            require(claim in names(objects, "PersistentVolumeClaim"), f"{what}: there is no claim {claim}")
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            require(name in names(objects, "ConfigMap"), f"{what}: there is no ConfigMap {name}")
        if "secret" in volume:
            read_only = all(mount.get("readOnly") for container in spec["containers"] for mount in container["volumeMounts"] if mount["name"] == volume["name"])
            require(read_only and volume["secret"].get("defaultMode") == 0o440, f"{what}: the secret {volume['secret']['secretName']} can be written, or everybody reads it")
        if "emptyDir" in volume:
            require("sizeLimit" in volume["emptyDir"], f"{what}: an emptyDir without a limit")
    for container in spec["containers"]:
        require(":" in container["image"], f"{what}: the image {container['image']} has no tag")
        security = {**spec.get("securityContext", {}), **container.get("securityContext", {})}
        require(security.get("runAsUser", 0) != 0 and security.get("runAsNonRoot") is True, f"{what}: it runs as root")
        require(security.get("capabilities", {}).get("drop") == ["ALL"], f"{what}: it keeps capabilities")
        require(security.get("allowPrivilegeEscalation") is False, f"{what}: it can get more rights")
        require(security.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{what}: no seccomp profile")
        require("limits" in container["resources"], f"{what}: no limits")
        require(security.get("readOnlyRootFilesystem") is True, f"{what}: its file system can be written")
        require("/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}, f"{what}: /tmp cannot be written")
        for source in container.get("envFrom", []):
            name = source["configMapRef"]["name"]
            require(name in names(objects, "ConfigMap"), f"{what}: there is no ConfigMap {name}")


def check_job(job, objects):
    spec, template = job["spec"], job["spec"]["template"]
    settings = next(each["data"] for each in of_kind(objects, "ConfigMap") if "FAST_PODS" in each["data"])
    pods = int(settings["FAST_PODS"])
    require(spec["completionMode"] == "Indexed", "the Job is not indexed")
    require(spec["completions"] == spec["parallelism"] == pods,
            f"completions {spec['completions']}, parallelism {spec['parallelism']}, FAST_PODS {pods} differ")
    require(int(settings["FAST_SPARES"]) < pods * int(settings["FAST_RANKS"]), "only spares")
    pod = template["spec"]
    require(settings["FAST_HOST"] == f"{job['metadata']['name']}-@.{pod['subdomain']}", "FAST_HOST is not a pod's name")
    require(pod["subdomain"] in names(objects, "Service"), f"there is no Service {pod['subdomain']}")
    require(pod["terminationGracePeriodSeconds"] >= 30, "too little time to save")
    require(pod["restartPolicy"] == "Never", "a podFailurePolicy needs restartPolicy Never")
    rules = [(each["action"], each["onExitCodes"]) for each in spec["podFailurePolicy"]["rules"] if "onExitCodes" in each]
    containers = {container["name"] for container in pod["containers"]}
    for action, status, text in ("Ignore", 75, "pods that wait for others count as failures"), ("FailJob", 2, "wrong options are tried again"):
        require(any(known == action and codes["operator"] == "In" and status in codes["values"] and codes["containerName"] in containers
                    for known, codes in rules), text)
    labels = template["metadata"]["labels"]
    for service in of_kind(objects, "Service"):
        require(service["spec"]["selector"].items() <= labels.items(), "the Service selects no pod")
        require(service["spec"]["clusterIP"] == "None", "the Service is not headless")
    for budget in of_kind(objects, "PodDisruptionBudget"):
        require(budget["spec"]["selector"]["matchLabels"].items() <= labels.items(), "the budget selects no pod")
        require(budget["spec"].get("minAvailable") == pods - 1, "the budget does not let one pod go")


def check_mpi_job(job):
    replicas = job["spec"]["mpiReplicaSpecs"]
    container = replicas["Launcher"]["template"]["spec"]["containers"][0]
    workers = next(each["value"] for each in container["env"] if each["name"] == "WORKERS")
    require(int(workers) == replicas["Worker"]["replicas"] * job["spec"]["slotsPerWorker"], "WORKERS and replicas differ")
    require({"name": "HYDRA_LAUNCHER_EXEC", "value": "/usr/bin/fast-ssh"} in container["env"], "the launcher's ssh does not know the port of the workers")


def check(objects):
    require(not of_kind(objects, "Secret"), "there is a Secret")
    for what, template in pod_specs(objects):
        check_pod(what, template, objects)
    for job in of_kind(objects, "Job"):
        check_job(job, objects)
    for job in of_kind(objects, "MPIJob"):
        check_mpi_job(job)


def check_schemas(objects, version):
    import kubernetes_validate
    for each in objects:
        if each["kind"] == "MPIJob":
            continue
        try:
            kubernetes_validate.validate(each, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            faults.append(f"{each['kind']}: {'.'.join(map(str, error.path))}: {error.message}")


def closed(schema):
    """The schema without room for names that it does not know, as a strict server has it."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema and isinstance(schema["properties"], dict) and schema.get("type") == "object":
        result.setdefault("additionalProperties", bool(schema.get("x-kubernetes-preserve-unknown-fields")))
    return result


def check_crd(objects, path):
    import jsonschema
    crd = next((each for each in yaml.load_all(path.read_text(), LOADER) if each), None)
    if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
        sys.exit(f"FAILED: {path}: this is no CustomResourceDefinition")
    kind = crd["spec"]["names"]["kind"]
    found = of_kind(objects, kind)
    for each in found:
        name = each["apiVersion"].partition("/")[2]
        version = next((v for v in crd["spec"]["versions"] if v["name"] == name), None)
        if version is None:
            faults.append(f"{kind}: the CRD has no version {name}")
            continue
        schema = closed(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}  # a server's own, not the CRD's
        for error in jsonschema.Draft7Validator(schema).iter_errors(each):
            if error.validator != "format":
                faults.append(f"{kind}: {'.'.join(map(str, error.path))}: {error.message}")
    return len(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--schema")
    parser.add_argument("--crd", type=pathlib.Path)
    options = parser.parse_args()
    for file in options.files:
        objects = [each for each in yaml.load_all(file.read_text(), LOADER) if each]
        before = len(faults)
        check(objects)
        if options.schema:
            check_schemas(objects, options.schema)
        checked = check_crd(objects, options.crd) if options.crd else 0
        faults[before:] = [f"{file.name}: {fault}" for fault in faults[before:]]
        print(f"{file.name}: {len(objects)} objects" + (f", {checked} of the CRD" if checked else ""))
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
